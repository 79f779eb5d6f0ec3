import { setTimeout as sleep } from 'node:timers/promises';
import type { WireMessage } from '../support/chat.js';

export interface ChatRequest {
  readonly messages: readonly WireMessage[];
  readonly streams: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a client knows to be stored: the response named it. */
export interface Told {
  readonly request: ChatRequest;
  readonly conversation: string;
  /** `x-spillway-head`: of a stream the request's last node, of a whole reply the reply's, if it could be recorded. */
  readonly head: string;
  /** The reply's text, where its end was seen; null where it broke off. */
  readonly reply: string | null;
}

export interface Answer {
  readonly reply: string;
  /** Null where the proxy went without the store. */
  readonly told: Told | null;
  /** False where the response said that the store failed. */
  readonly isStored: boolean;
}

/** So long one request is sent again; nothing that is mended takes that long. */
const PATIENCE_MS = 90_000;

/** Clients of proxies, which send a request again, to any of them, until it is answered to its end. */
export class Caller {
  /** Everything that any of them was told. */
  readonly told: Told[] = [];
  /** How often a request was sent again, by what the client saw: a status, or 0 for a connection that broke. */
  readonly failures = new Map<number, number>();
  readonly #urls: () => readonly string[];
  readonly #random: (limit: number) => number;
  readonly #onAnswer: () => void;

  constructor(urls: () => readonly string[], random: (limit: number) => number, onAnswer: () => void) {
    this.#urls = urls;
    this.#random = random;
    this.#onAnswer = onAnswer;
  }

  async ask(request: ChatRequest): Promise<Answer> {
    const startedAt = performance.now();
    for (;;) {
      const urls = this.#urls();
      const url = urls[this.#random(Math.max(1, urls.length))];
      const seen = url === undefined ? 'no proxy runs' : await this.#once(url, request);
      if (typeof seen !== 'string') return seen;
      if (performance.now() - startedAt > PATIENCE_MS) throw new Error(`never answered; at last: ${seen}`);
      await sleep(20 + this.#random(100));
    }
  }

  /** Sends it again until the store took it, too. */
  async askUntilStored(request: ChatRequest): Promise<Answer & { readonly told: Told }> {
    for (;;) {
      const { told, ...answer } = await this.ask(request);
      if (told !== null) return { ...answer, told };
      await sleep(100);
    }
  }

  /** A text that says why, where there was no whole answer. */
  async #once(url: string, request: ChatRequest): Promise<Answer | string> {
    let headers: Headers | null = null;
    let status = 0;
    let text = '';
    let isWhole = false;
    try {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json', ...request.headers },
        body: JSON.stringify({ model: 'any-model', messages: request.messages, stream: request.streams }),
      });
      ({ headers } = response);
      status = response.status;
      text = await response.text();
      isWhole = true;
    } catch (error) {
      text = String(error);
    }
    const reply = status === 200 && isWhole ? replyIn(text, request.streams) : null;
    const told = this.#note(request, headers, reply);
    if (reply === null) {
      const failure = isWhole ? status : 0;
      this.failures.set(failure, (this.failures.get(failure) ?? 0) + 1);
      return `${status} ${text.slice(0, 300)}`;
    }
    this.#onAnswer();
    return { reply, told, isStored: headers?.get('x-spillway-store') !== 'unavailable' };
  }

  /** Errors name places, too: what they name is stored. */
  #note(request: ChatRequest, headers: Headers | null, reply: string | null): Told | null {
    const [conversation, head] = ['x-spillway-conversation', 'x-spillway-head'].map((name) => headers?.get(name));
    if (conversation == null || head == null) return null;
    const told = { request, conversation, head, reply };
    this.told.push(told);
    return told;
  }
}

/** The text of an answer; null for a stream that did not come to its end. */
function replyIn(body: string, streams: boolean): string | null {
  if (!streams) return (JSON.parse(body) as { choices: [{ message: { content: string } }] }).choices[0].message.content;
  const events = body.split('\n\n').filter((event) => event.startsWith('data: '));
  if (events.at(-1) !== 'data: [DONE]') return null;
  return events
    .slice(0, -1)
    .map((event) => JSON.parse(event.slice('data: '.length)) as { choices: { delta: { content?: string } }[] })
    .map(({ choices }) => choices[0]?.delta.content ?? '')
    .join('');
}
