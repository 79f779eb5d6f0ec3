import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextRound } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

/** A request as it arrived. */
export interface Received {
  readonly method: string;
  readonly target: string;
  /** As on the wire: names and values in turn. */
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  /** Aborted when the connection closes before the answer was sent to its end. */
  readonly left: AbortSignal;
}

export interface Provider {
  /** Base URL with `/v1`. */
  readonly url: string;
  readonly received: readonly Received[];
}

/** Answers a request whose body was read. */
export type Respond = (received: Received, response: ServerResponse) => void | Promise<void>;

/** An upstream whose every byte a test decides; it ends with the test. */
export async function startProvider(respond: Respond): Promise<Provider> {
  const received: Received[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    const left = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) left.abort();
    });
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = '', url: target = '', rawHeaders, headers } = request;
    const record = { method, target, rawHeaders, headers, body: Buffer.concat(chunks), left: left.signal };
    received.push(record);
    await respond(record, response);
  };
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, received };
}

/** Writes bytes in pieces of `size`, each a chunk of its own on the wire. */
export async function writeInPieces(response: ServerResponse, bytes: Uint8Array, size: number): Promise<void> {
  for (let from = 0; from < bytes.byteLength; from += size) {
    response.write(bytes.subarray(from, from + size));
    await nextRound();
  }
}

export const SSE_HEADERS = { 'content-type': 'text/event-stream; charset=utf-8' };

/** A chunk of a chat-completions stream as one event; `more` are further members of its choice. */
export function chunkEvent(delta: object, more: object = {}): string {
  const choices = [{ index: 0, delta, finish_reason: null, ...more }];
  return `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`;
}

export const DONE = 'data: [DONE]\n\n';

/** A whole chat completion that says `content`. */
export function completion(content: string): string {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
  return JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm', choices });
}
