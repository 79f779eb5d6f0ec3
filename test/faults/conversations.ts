import { randomNumbers } from '../ledger/random-numbers.js';
import { padding } from '../support/chat.js';
import type { WireMessage } from '../support/chat.js';
import type { Caller, Told } from './caller.js';

/** How a conversation is used: by whom at once, and what each request carries. */
export type Kind = 'in-turn' | 'thin-in-turn' | 'thin-at-once' | 'forks' | 'unnamed-forks';

export interface Spoken {
  readonly kind: Kind;
  /** The last that each client was told; of one that everybody uses in turn, the last of all. */
  readonly ends: readonly Told[];
}

export interface Speakers {
  readonly caller: Caller;
  /** What each client does follows from it. */
  readonly seed: number;
  /** Names the conversation, and every text in it. */
  readonly name: string;
  readonly clients: number;
  readonly turns: number;
}

/** Tokens of what a client says. */
const SAID_TOKENS = 420;

/** Lets several clients use one conversation, each for so many turns, until the last thing each said is stored. */
export async function speak(kind: Kind, speakers: Speakers): Promise<Spoken> {
  const { clients } = speakers;
  switch (kind) {
    case 'in-turn':
      return { kind, ends: [await inTurn(speakers)] };
    case 'thin-in-turn':
      return { kind, ends: [await thin({ ...speakers, turns: speakers.turns * clients }, 0)] };
    case 'thin-at-once': {
      // Two processes that begin it in the same moment may both append to its first message.
      await thin({ ...speakers, turns: 1 }, clients);
      const all = Array.from({ length: clients }, (_, client) => thin(speakers, client));
      return { kind, ends: await Promise.all(all) };
    }
    case 'forks':
    case 'unnamed-forks': {
      const headers = kind === 'forks' ? named(speakers) : {};
      const all = Array.from({ length: clients }, (_, client) => forking(speakers, headers, client));
      return { kind, ends: (await Promise.all(all)).flat() };
    }
  }
}

function named({ name }: Speakers): Readonly<Record<string, string>> {
  return { 'x-spillway-conversation': name };
}

/** Whoever speaks next, it is to the end of what was said. */
async function inTurn(speakers: Speakers): Promise<Told> {
  const { caller, turns, clients } = speakers;
  const random = randomNumbers(speakers.seed);
  const history: WireMessage[] = [];
  for (let turn = 1; ; turn++) {
    const isLast = turn === turns * clients;
    history.push(user(speakers, `turn ${turn}`));
    const request = { messages: [...history], streams: random(2) === 0, headers: named(speakers) };
    const { reply, told } = await (isLast ? caller.askUntilStored(request) : caller.ask(request));
    history.push({ role: 'assistant', content: reply });
    if (isLast && told !== null) return told;
  }
}

/** Sends what is new alone, SPEC 1.6. */
async function thin(speakers: Speakers, client: number): Promise<Told> {
  const { caller, turns } = speakers;
  const random = randomNumbers(speakers.seed + client);
  const headers = { ...named(speakers), 'x-spillway-append': 'true' };
  for (let turn = 1; ; turn++) {
    const messages = [user(speakers, `client ${client} turn ${turn}`)];
    const { told } = await caller.askUntilStored({ messages, streams: random(3) === 0, headers });
    if (turn === turns) return told;
  }
}

/** Begins as all do, goes on by itself, now and then from an earlier place, and now and then sends a request twice. */
async function forking(
  speakers: Speakers,
  headers: Readonly<Record<string, string>>,
  client: number,
): Promise<readonly Told[]> {
  const { caller, turns } = speakers;
  const random = randomNumbers(speakers.seed + client);
  let messages: readonly WireMessage[] = [];
  for (let turn = 1; ; turn++) {
    const isLast = turn === turns;
    if (random(6) === 0) messages = messages.slice(0, 2 * random(1 + messages.length / 2));
    messages = [...messages, user(speakers, messages.length < 4 ? 'as all do' : `client ${client} turn ${turn}`)];
    const request = { messages, streams: random(2) === 0, headers };
    const copies = Array.from({ length: random(5) === 0 ? 2 : 1 }, () =>
      isLast ? caller.askUntilStored(request) : caller.ask(request),
    );
    const answers = await Promise.all(copies);
    messages = [...messages, { role: 'assistant', content: answers[0]?.reply ?? '' }];
    if (isLast) return answers.flatMap(({ told }) => told ?? []);
  }
}

function user({ name }: Speakers, what: string): WireMessage {
  return { role: 'user', content: padding(`${name}, ${what}:`, SAID_TOKENS) };
}
