import type { StartedPair } from './start.js';

export interface WireMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly [key: string]: unknown;
}

/** What a client saw of one turn. */
export interface Seen {
  readonly status: number;
  readonly text: string;
  /** Spillway's own headers, without their prefix. */
  readonly spillway: Readonly<Record<string, string>>;
}

/** A client that keeps its own full history, as every chat client does. */
export class Chat {
  messages: WireMessage[] = [];
  readonly #pair: Pick<StartedPair, 'post'>;
  readonly #headers: Record<string, string>;
  readonly #model: string;

  constructor(pair: Pick<StartedPair, 'post'>, headers: Record<string, string> = {}, model = 'any-model') {
    this.#pair = pair;
    this.#headers = headers;
    this.#model = model;
  }

  async say(content: string): Promise<Seen> {
    this.messages = [...this.messages, { role: 'user', content }];
    return this.send();
  }

  /** Sends the history as it is; the reply is appended if there was one. */
  async send(): Promise<Seen> {
    const response = await this.#pair.post({ model: this.#model, messages: this.messages }, this.#headers);
    const body = (await response.json()) as { choices?: { message: WireMessage }[] };
    const reply = body.choices?.[0]?.message;
    if (reply !== undefined) this.messages = [...this.messages, reply];
    const spillway = Object.fromEntries(
      [...response.headers].flatMap(([name, value]) =>
        name.startsWith('x-spillway-') ? [[name.slice(11), value]] : [],
      ),
    );
    return { status: response.status, text: typeof reply?.content === 'string' ? reply.content : '', spillway };
  }
}

/** Text of about so many tokens that says nothing, beginning with a word of its own. */
export function padding(word: string, tokens: number): string {
  return `${word} ${'plain words of no weight '.repeat(Math.ceil(tokens / 5))}`.trim();
}
