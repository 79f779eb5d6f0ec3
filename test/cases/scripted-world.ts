import { SUMMARY_HEADINGS } from '../../src/core/compaction/headings.js';
import type { dispatchOf } from '../../src/proxy/dispatch.js';
import { prepare } from '../../src/proxy/prepare.js';
import type { Turn } from '../../src/proxy/turn.js';
import type { Simulator } from '../../src/simulator/simulator.js';
import type { SendUpstream } from '../../src/upstream/upstream.js';
import { createWorld } from '../support/in-memory.js';
import type { WorldOptions } from '../support/in-memory.js';

export type Wire = Readonly<Record<string, unknown>>;

/** What a summary call is answered: a text that stops normally, or a status. */
export type SummaryAnswer = string | number;

/** A record with every heading; `note` stands under each. */
export const recordOf = (note: string): string => SUMMARY_HEADINGS.map((heading) => `${heading}\n${note}`).join('\n');

export interface SummaryCallSeen {
  /** The body as it was sent. */
  readonly text: string;
  readonly body: Wire;
  /** What there was to be summarised. */
  readonly input: string;
}

export interface World extends ReturnType<typeof createWorld> {
  /** Summary calls so far. */
  readonly asked: readonly SummaryCallSeen[];
  /** Opens and prepares a request with these messages, as the proxy would before it sends it. */
  request(messages: readonly Wire[], fields?: Wire, headers?: Readonly<Record<string, string>>): Promise<Sent>;
}

export interface Sent {
  readonly turn: Turn;
  readonly prepared: Awaited<ReturnType<typeof prepare>>;
  /** The body as it would leave, and its messages. */
  readonly text: string;
  readonly messages: readonly Wire[];
}

/**
 * The proxy's parts around a memory ledger, with a summariser of the test's own: `answer` gets the number of the call,
 * from 0, and its input. Without one every call is answered well, each with a record that names its number.
 */
export function scriptedWorld(
  options: Omit<WorldOptions, 'send'>,
  answer: (call: number, input: string) => SummaryAnswer | Promise<SummaryAnswer> = (call) => recordOf(`call ${call}`),
): World {
  const asked: SummaryCallSeen[] = [];
  const send: SendUpstream = async (request) => {
    const text = typeof request.body === 'string' ? request.body : '';
    const body = JSON.parse(text) as Wire & { readonly messages: readonly { readonly content: string }[] };
    const input = body.messages.at(-1)?.content ?? '';
    asked.push({ text, body, input });
    const said = await answer(asked.length - 1, input);
    const message = { role: 'assistant', content: said };
    const reply =
      typeof said === 'number'
        ? { error: { message: 'Refused.', type: 'server_error' } }
        : { choices: [{ index: 0, finish_reason: 'stop', message }] };
    return {
      status: typeof said === 'number' ? said : 200,
      headers: [],
      body: (async function* () {
        yield await Promise.resolve(new TextEncoder().encode(JSON.stringify(reply)));
      })(),
    };
  };
  const world = createWorld({ ...options, send });
  return {
    ...world,
    asked,
    async request(messages, fields = {}, headers = {}) {
      const turn = await world.open({ model: 'any', messages, ...fields }, headers);
      const prepared = await prepare(turn, world.preparing);
      return { turn, prepared, ...bodyOf(prepared.dispatch) };
    },
  };
}

function bodyOf(dispatch: ReturnType<typeof dispatchOf>): Pick<Sent, 'text' | 'messages'> {
  const text = new TextDecoder().decode(dispatch.body);
  return { text, messages: (JSON.parse(text) as { readonly messages: readonly Wire[] }).messages };
}

export const user = (content: unknown, more: Wire = {}): Wire => ({ role: 'user', content, ...more });
export const assistant = (content: string): Wire => ({ role: 'assistant', content });
export const result = (id: string, content: string): Wire => ({ role: 'tool', tool_call_id: id, content });

export function calling(...ids: readonly string[]): Wire {
  const calls = ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: `{"at":"${id}"}` } }));
  return { role: 'assistant', content: null, tool_calls: calls };
}

/** About so many tokens, beginning with a word of their own. */
export const filler = (word: string, tokens: number): string =>
  `${word} ${'plain words of no weight '.repeat(Math.max(1, Math.round(tokens / 5)))}`.trim();

/** A turn that is over, of about so many tokens. */
export const talk = (word: string, tokens: number): readonly Wire[] => [
  user(filler(`ask-${word}`, tokens / 2)),
  assistant(filler(`tell-${word}`, tokens / 2)),
];

/** Turns named by letters from `a` on. */
export const talks = (count: number, tokens: number): readonly Wire[] =>
  Array.from({ length: count }, (_, index) => talk(String.fromCodePoint(97 + index), tokens)).flat();

/** The messages of the last request that a simulator's model read. */
export function lastRead(simulator: Simulator): readonly Wire[] {
  const body = simulator.chatRequests().at(-1)?.body as { readonly messages: readonly Wire[] } | undefined;
  return body?.messages ?? [];
}

/** True for the message that a summary is sent as. */
export const isRecord = (message: Wire | undefined): boolean =>
  String(message?.['content']).includes('[Previous conversation summary]');
