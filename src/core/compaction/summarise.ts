import type { SummaryRequest, SummaryResponse, UniqueId } from '../ports.js';
import type { Purse } from './purse.js';
import { redactSecrets } from './redact.js';
import { splitText } from './split-text.js';
import type { RejectionReason, SummaryText } from './validate.js';

/** Below this a chunk is too small to be worth a call. */
const SMALLEST_CHUNK_TOKENS = 256;

/** A piece of the history to be covered. */
export interface Passage {
  readonly text: string;
  readonly tokens: number;
  /** If a turn ends with this passage, how many history items are covered then; null in the middle of a turn. */
  readonly covered: number | null;
}

/** What is to be written, and what is good enough. */
export interface SummaryTask {
  write(material: SummaryMaterial): SummaryRequest;
  /** Null if the text will do. */
  refuse(response: SummaryText, tokens: number, capTokens: number): RejectionReason | null;
  /** The form in which an accepted text is kept and sent. */
  content(text: string): string;
}

export interface SummaryMaterial {
  /** The record so far, in its kept form; null for the first part. */
  readonly previous: string | null;
  readonly transcript: string;
  /** An unguessable word that fences the data (SPEC 5.6). */
  readonly fence: string;
  readonly maxOutputTokens: number;
}

export interface SummariseInput {
  readonly task: SummaryTask;
  /** The record to go on from, or null. */
  readonly previous: string | null;
  readonly passages: readonly Passage[];
  /** Most tokens of one summary (SPEC 5.6). */
  readonly capTokens: number;
  /** Most tokens of material in one call, the record so far included. */
  readonly inputTokens: number;
}

export interface SummariseDeps {
  /** One call; never rejects but when everything is to stop. */
  ask(request: SummaryRequest): Promise<SummaryResponse>;
  readonly purse: Purse;
  readonly uniqueId: UniqueId;
  count(text: string): number;
}

export interface Summarised {
  /** The record at the latest whole turn reached, or null if there is none. */
  readonly record: { readonly content: string; readonly covered: number } | null;
  /** Why it stopped before the end; null if it did not. */
  readonly stop: { readonly outcome: 'failed' | 'rejected'; readonly reason: string } | null;
}

/**
 * Writes one record of a history in as few calls as its chunks need (SPEC 5.6). Each call gets the record so far; an
 * overflow halves the chunk, a text that is refused gets one more try. When the purse is empty or a call fails, the
 * record at the latest whole turn stays usable.
 */
export async function summarise(input: SummariseInput, deps: SummariseDeps): Promise<Summarised> {
  const queue = input.passages.map((passage) => ({ ...passage, text: redactSecrets(passage.text) }));
  let soFar = input.previous === null ? null : redactSecrets(input.previous);
  let record: Summarised['record'] = null;
  let inputTokens = input.inputTokens;
  let retried = false;

  while (queue.length > 0) {
    const room = inputTokens - (soFar === null ? 0 : deps.count(soFar));
    if (room < SMALLEST_CHUNK_TOKENS) return stopped(record, 'failed', 'summariser_window_too_small');
    const taken = takeChunk(queue, room, deps.count);
    if (!deps.purse.take()) return stopped(record, 'failed', 'purse_empty');
    const response = await deps.ask(
      input.task.write({
        previous: soFar,
        transcript: queue
          .slice(0, taken)
          .map((passage) => passage.text)
          .join('\n'),
        fence: deps.uniqueId(),
        maxOutputTokens: input.capTokens,
      }),
    );
    switch (response.kind) {
      case 'failed':
        return stopped(record, 'failed', response.reason);
      case 'overflow':
        inputTokens = Math.floor(Math.min(inputTokens, response.limitTokens ?? inputTokens) / 2);
        continue;
      case 'text': {
        const refused = input.task.refuse(response, deps.count(response.text), input.capTokens);
        if (refused !== null) {
          if (retried) return stopped(record, 'rejected', refused);
          retried = true;
          continue;
        }
        retried = false;
        soFar = redactSecrets(input.task.content(response.text));
        const covered = queue[taken - 1]?.covered ?? null;
        if (covered !== null) record = { content: soFar, covered };
        queue.splice(0, taken);
      }
    }
  }
  return { record, stop: null };
}

/**
 * How many passages of the queue's front make the next chunk: as many as fit, back to the last whole turn among them. A
 * front passage that does not fit alone is split in place, and each piece says again whose words it holds.
 */
function takeChunk(queue: Passage[], roomTokens: number, count: (text: string) => number): number {
  const first = queue[0];
  if (first !== undefined && first.tokens > roomTokens) {
    const texts = splitText(first.text, (first.text.length * roomTokens) / first.tokens / 1.2);
    const label = /^\[[^\]\n]{1,200}\] /.exec(first.text)?.[0] ?? '';
    const pieces = texts.map((piece, index) => {
      const text = index === 0 ? piece : `${label}${piece}`;
      const covered = index === texts.length - 1 ? first.covered : null;
      return { text, tokens: Math.min(count(text), roomTokens), covered };
    });
    queue.splice(0, 1, ...pieces);
  }
  let taken = 0;
  let tokens = 0;
  let wholeTurns = 0;
  for (const passage of queue) {
    if (taken > 0 && tokens + passage.tokens > roomTokens) break;
    // With the line break behind it.
    tokens += passage.tokens + 1;
    taken++;
    if (passage.covered !== null) wholeTurns = taken;
  }
  return taken === queue.length || wholeTurns === 0 ? taken : wholeTurns;
}

function stopped(record: Summarised['record'], outcome: 'failed' | 'rejected', reason: string): Summarised {
  return { record, stop: { outcome, reason } };
}

/** Room for material in one summary call: the summariser's window less its output, a request without material, a margin. */
export function materialTokens(
  task: SummaryTask,
  windowTokens: number,
  capTokens: number,
  calibration: number,
  deps: SummariseDeps,
): number {
  const empty = task.write({ previous: '', transcript: '', fence: deps.uniqueId(), maxOutputTokens: capTokens });
  const room = (windowTokens * 0.9 - capTokens) / Math.max(1, calibration);
  return Math.floor(room) - deps.count(empty.instructions) - deps.count(empty.input);
}
