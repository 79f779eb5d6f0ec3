import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

export interface RawRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
}

/** An answer as it comes: nothing decoded, nothing joined. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  /** Resolves when the body so far holds `text`; rejects if it ends before. */
  until(text: string): Promise<void>;
  /** The whole body; rejects if the connection broke. */
  body(): Promise<Buffer>;
  /** Closes the connection, as a client does that was killed. */
  leave(): void;
}

export interface RawExchange {
  readonly answer: Promise<RawAnswer>;
  /** Closes the connection before there is an answer. */
  leave(): void;
}

/** Sends a request over a connection of its own, with exactly these headers. The path begins with `/`. */
export function sendRaw(base: string, path: string, options: RawRequest = {}): RawExchange {
  const { method = 'POST', headers = {}, body } = options;
  const outgoing = request(`${base}${path}`, {
    method,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value as string | string[]])),
    agent: false,
  });
  const answer = once(outgoing, 'response').then(([incoming]) => answerOf(incoming as IncomingMessage));
  outgoing.on('error', () => undefined);
  outgoing.end(body);
  return { answer, leave: () => outgoing.destroy() };
}

/** A chat request as most clients send it, over `sendRaw`. */
export function sendChat(base: string, body: unknown, headers: Readonly<Record<string, string>> = {}): RawExchange {
  return sendRaw(base, '/v1/chat/completions', {
    headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  });
}

function answerOf(incoming: IncomingMessage): RawAnswer {
  const chunks: Buffer[] = [];
  const seen = (): Buffer => Buffer.concat(chunks);
  const waiting = new Set<() => void>();
  const ended = new Promise<Buffer>((resolve, reject) => {
    incoming.on('end', () => (incoming.complete ? resolve(seen()) : reject(new Error('the response broke off'))));
    incoming.on('error', (cause) => reject(new Error('the response broke off', { cause })));
    incoming.on('close', () => reject(new Error('the response broke off')));
  });
  ended.catch(() => undefined);
  incoming.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    for (const look of waiting) look();
  });
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    until: (text) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (!seen().includes(text)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
        ended.then(
          () => reject(new Error(`the body ended without ${JSON.stringify(text)}`)),
          (error: unknown) => reject(error),
        );
      }),
    body: () => ended,
    leave: () => incoming.destroy(),
  };
}
