import OpenAI from 'openai';
import { z } from 'zod';
import { fileContent, INSTRUCTIONS, TOOLS } from './conversation.js';
import type { DemoStep } from './conversation.js';

const readFileArguments = z.object({ path: z.string() });

type Message = OpenAI.ChatCompletionMessageParam;

/** One request as the client saw it. */
export interface Row {
  readonly label: string;
  readonly messages: number;
  readonly headers: Headers;
  readonly durationMs: number;
}

/** An ordinary client of the official SDK: it keeps its whole history and sends it every time, streaming. */
export class DemoClient {
  readonly #openai: OpenAI;
  readonly #model: string;
  readonly #show: (row: Row) => void;
  messages: Message[] = [];

  constructor(baseURL: string, apiKey: string, model: string, show: (row: Row) => void) {
    this.#openai = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
    this.#model = model;
    this.#show = show;
  }

  /** Does a step and returns the assistant's last words. Rejects with the SDK's own error if a request fails. */
  async take(step: DemoStep): Promise<string> {
    if (step.kind === 'regenerate') this.#dropLastReply();
    else this.messages.push({ role: 'user', content: step.text });
    let reply = await this.#request(step.kind);
    while (reply.tool_calls !== undefined && reply.tool_calls.length > 0) {
      for (const call of reply.tool_calls) {
        if (call.type !== 'function') continue;
        const { path } = readFileArguments.parse(JSON.parse(call.function.arguments));
        this.messages.push({ role: 'tool', tool_call_id: call.id, content: fileContent(path) });
      }
      reply = await this.#request('  └ results');
    }
    return typeof reply.content === 'string' ? reply.content : '';
  }

  async #request(label: string): Promise<OpenAI.ChatCompletionAssistantMessageParam> {
    const startedAt = performance.now();
    const { data: stream, response } = await this.#openai.chat.completions
      .create({ model: this.#model, messages: [INSTRUCTIONS, ...this.messages], tools: TOOLS, stream: true })
      .withResponse();
    const message = await collect(stream);
    this.messages.push(message);
    this.#show({
      label,
      messages: this.messages.length,
      headers: response.headers,
      durationMs: performance.now() - startedAt,
    });
    return message;
  }

  #dropLastReply(): void {
    const user = this.messages.findLastIndex((message) => message.role === 'user');
    this.messages = this.messages.slice(0, user + 1);
  }
}

async function collect(
  stream: AsyncIterable<OpenAI.ChatCompletionChunk>,
): Promise<OpenAI.ChatCompletionAssistantMessageParam> {
  let content = '';
  const calls: OpenAI.ChatCompletionMessageFunctionToolCall[] = [];
  for await (const chunk of stream) {
    const delta = chunk.choices[0]?.delta;
    content += delta?.content ?? '';
    for (const part of delta?.tool_calls ?? []) {
      const call = (calls[part.index] ??= { id: '', type: 'function', function: { name: '', arguments: '' } });
      call.id += part.id ?? '';
      call.function.name += part.function?.name ?? '';
      call.function.arguments += part.function?.arguments ?? '';
    }
  }
  return { role: 'assistant', content, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
}
