import type { RecordedRequest } from '../../src/simulator/request-log.js';
import type { WireMessage } from './chat.js';
import type { StartedPair } from './start.js';
import type { ToolOutput } from './tool-outputs.js';

export const AGENT_TOOLS = ['run_command', 'read_file', 'search_files'].map((name) => ({
  type: 'function',
  function: {
    name,
    description: `Does what ${name} says and returns what came of it as text.`,
    parameters: { type: 'object', properties: { path: { type: 'string' }, run: { type: 'integer' } } },
  },
}));

/** Calls of tools, one a message, each with what came back, as if a model had asked for them. */
export function toolMessages(outputs: readonly ToolOutput[]): readonly WireMessage[] {
  return outputs.flatMap((output) => {
    const id = `call_${output.mark}`;
    const call = { id, type: 'function', function: { name: output.tool, arguments: output.arguments } };
    return [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: id, content: output.text },
    ];
  });
}

/** What became of one request of an agent's. */
export interface Step {
  readonly status: number;
  /** The body of an error; empty otherwise. */
  readonly error: string;
  /** Spillway's own headers, without their prefix. */
  readonly spillway: Readonly<Record<string, string>>;
}

/** A coding agent: one user message, and calls of tools under it until it has what it wants. */
export class Agent {
  readonly messages: WireMessage[] = [];
  readonly #pair: StartedPair;
  readonly #model: string;
  /** The messages as bytes of JSON, a comma before each but the first: a long history is not written again for each request. */
  readonly #written: Buffer[] = [];

  constructor(pair: StartedPair, model: string) {
    this.#pair = pair;
    this.#model = model;
  }

  add(...messages: readonly WireMessage[]): void {
    for (const message of messages) {
      this.#written.push(Buffer.from(`${this.messages.length === 0 ? '' : ','}${JSON.stringify(message)}`));
      this.messages.push(message);
    }
  }

  /** Sends the history as it is. The reply is appended if there was one. */
  async send(
    more: Readonly<Record<string, unknown>> = {},
    init: { readonly signal?: AbortSignal } = {},
  ): Promise<Step> {
    const rest = JSON.stringify({ model: this.#model, tools: AGENT_TOOLS, ...more }).slice(1);
    const response = await fetch(`${this.#pair.spillway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json' },
      body: Buffer.concat([Buffer.from('{"messages":['), ...this.#written, Buffer.from(`],${rest}`)]),
      ...init,
    });
    const text = await response.text();
    const spillway = Object.fromEntries(
      [...response.headers].flatMap(([name, value]) =>
        name.startsWith('x-spillway-') ? [[name.slice(11), value]] : [],
      ),
    );
    if (response.status !== 200) return { status: response.status, error: text, spillway };
    const { choices } = JSON.parse(text) as { choices: { message: WireMessage }[] };
    const message = choices[0]?.message;
    if (message !== undefined) this.add(message);
    return { status: 200, error: '', spillway };
  }

  /** Answers the calls of the last reply, one after the other, with these outputs. */
  answer(...outputs: readonly ToolOutput[]): void {
    const calls = (this.messages.at(-1)?.['tool_calls'] ?? []) as { id: string }[];
    this.add(
      ...calls.map(({ id }, index) => ({ role: 'tool', tool_call_id: id, content: outputs[index]?.text ?? '' })),
    );
  }
}

/** The messages of a recorded request, as its model read them. */
export function messagesOf(request: RecordedRequest | undefined): readonly WireMessage[] {
  return (request?.body as { messages: WireMessage[] } | undefined)?.messages ?? [];
}

/** Ids of calls without a result right behind them, and of results without a call right before them. */
export function unpaired(messages: readonly WireMessage[]): readonly string[] {
  const faults: string[] = [];
  let open: string[] = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      const id = String(message['tool_call_id']);
      if (open.includes(id)) open = open.filter((other) => other !== id);
      else faults.push(id);
      continue;
    }
    faults.push(...open);
    open = ((message['tool_calls'] ?? []) as { id: string }[]).map(({ id }) => id);
  }
  return [...faults, ...open];
}
