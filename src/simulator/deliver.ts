import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as delay, setImmediate as nextRound } from 'node:timers/promises';
import type { Answer } from './answer.js';

/**
 * Sends an answer as its delivery says. `sent`: to its end; `left`: the client went before that; `cut`: all that was to be sent is
 * on its way, and the caller now breaks the connection.
 */
export async function deliver(
  answer: Answer,
  response: ServerResponse,
  left: AbortSignal,
): Promise<'sent' | 'cut' | 'left'> {
  try {
    return await send(answer, response, left);
  } catch (error) {
    if (left.aborted) return 'left';
    throw error;
  }
}

async function send(answer: Answer, response: ServerResponse, left: AbortSignal): Promise<'sent' | 'cut' | 'left'> {
  left.throwIfAborted();
  const { headerDelayMs, pieceDelayMs, splitBytes, cut } = answer.delivery ?? {};
  if (headerDelayMs !== undefined) await delay(headerDelayMs, undefined, { signal: left });
  if (cut?.after === 'nothing') return stop(cut.how, left);
  response.writeHead(answer.status, { ...answer.headers });
  response.flushHeaders();
  const stopsAfter = cut === undefined ? Infinity : Math.min(cut.after, answer.pieces.length - 1);
  for (const [index, piece] of answer.pieces.entries()) {
    if (cut !== undefined && index >= stopsAfter) return stop(cut.how, left);
    if (index > 0 && pieceDelayMs !== undefined) await delay(pieceDelayMs, undefined, { signal: left });
    for (const write of slices(Buffer.from(piece), splitBytes)) await writeTo(response, write, left);
  }
  response.end();
  return 'sent';
}

async function stop(how: 'close' | 'stall', left: AbortSignal): Promise<'cut' | 'left'> {
  if (how === 'stall') {
    left.throwIfAborted();
    await once(left, 'abort');
    return 'left';
  }
  // What was written leaves the process first, so that the client has seen it when the connection breaks.
  await nextRound();
  return 'cut';
}

function slices(bytes: Buffer, most: number = bytes.length): readonly Buffer[] {
  const step = Math.max(1, most);
  return Array.from({ length: Math.ceil(bytes.length / step) }, (_, index) =>
    bytes.subarray(index * step, (index + 1) * step),
  );
}

async function writeTo(response: ServerResponse, bytes: Buffer, left: AbortSignal): Promise<void> {
  left.throwIfAborted();
  if (!response.write(bytes)) await once(response, 'drain', { signal: left });
}
