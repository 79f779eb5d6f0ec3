/** A provider that answers at once: node:http and nothing else. Whole, or in pieces to whoever accepts an event stream. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { REPLY, REPLY_PIECES } from '../conversation.js';
import { announce } from './announce.js';

/** Bytes of these requests to a token, as far as it takes for the usage to be believed. */
const BYTES_PER_TOKEN = 5;

/** What a provider would have counted: from usage that does not fit its request one would see a prompt that was cut. */
function usageOf(request: IncomingMessage): unknown {
  const input = Math.ceil(Number(request.headers['content-length'] ?? 0) / BYTES_PER_TOKEN);
  return { prompt_tokens: input, completion_tokens: 25, total_tokens: input + 25 };
}

const about = { id: 'chatcmpl-bench', created: 1, model: 'bench' };
const event = (fields: unknown): Buffer =>
  Buffer.from(`data: ${JSON.stringify({ ...about, object: 'chat.completion.chunk', ...Object(fields) })}\n\n`);
const choice = (delta: unknown, finish_reason: string | null): unknown => ({
  choices: [{ index: 0, delta, finish_reason }],
});

const pieces = [
  event(choice({ role: 'assistant', content: '' }, null)),
  ...REPLY_PIECES.map((content) => event(choice({ content }, null))),
  event(choice({}, 'stop')),
];
const message = { role: 'assistant', content: REPLY };

function answer(request: IncomingMessage, response: ServerResponse): void {
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  const body = JSON.stringify({ ...about, object: 'chat.completion', choices, usage: usageOf(request) });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body);
}

/** One write an event and turn of the loop, as a model that speaks. */
async function speak(request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const piece of pieces) {
    response.write(piece);
    await setImmediate();
  }
  response.write(event({ choices: [], usage: usageOf(request) }));
  response.end('data: [DONE]\n\n');
}

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    if (request.headers.accept === 'text/event-stream') void speak(request, response);
    else answer(request, response);
  });
});
announce(server);
