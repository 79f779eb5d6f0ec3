import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { recogniseOverflow, type OverflowEvidence } from '../../../src/core/overflow/recognise.js';
import type { Overflow, Verdict } from '../../../src/core/overflow/verdict.js';

/** Evidence of a plain HTTP 400 with nothing known besides, with what the test is about put in. */
function evidence(body: unknown, known: Partial<Omit<OverflowEvidence, 'body'>> = {}): OverflowEvidence {
  return {
    status: 400,
    body: typeof body === 'string' ? body : JSON.stringify(body),
    upstreamHost: null,
    clientWrote: () => false,
    estimatedTokens: null,
    windowTokens: null,
    ...known,
  };
}

export function recognise(body: unknown, known: Partial<Omit<OverflowEvidence, 'body'>> = {}): Verdict {
  return recogniseOverflow(evidence(body, known));
}

/** The verdict as an overflow; throws if it is none. */
export function overflow(body: unknown, known: Partial<Omit<OverflowEvidence, 'body'>> = {}): Overflow {
  const verdict = recognise(body, known);
  if (verdict.kind === 'none') throw new Error(`not recognised: ${verdict.reason}`);
  return verdict;
}

/** An error message in the most usual envelope. */
export function errorBody(message: string, fields: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ error: { message, type: 'invalid_request_error', ...fields } });
}

/** `clientWrote` for a client whose messages are this text. */
export function wrote(messages: string): (text: string) => boolean {
  return (text) => messages.includes(text);
}

const reported = z.object({
  provider: z.string(),
  status: z.number(),
  where: z.enum(['http', 'sse', 'responses-event', 'finish', 'silent']),
  body: z.unknown(),
  is_overflow: z.boolean(),
  class: z.string(),
  limit: z.number().nullable(),
  used: z.number().nullable(),
  used_input: z.number().optional(),
  used_output: z.number().optional(),
  used_is_floor: z.boolean().optional(),
  limit_trusted: z.boolean().optional(),
  excess: z.number().optional(),
});
export type ReportedCase = z.infer<typeof reported>;

const invented = z.object({
  name: z.string(),
  status: z.number(),
  host: z.string().nullable(),
  body: z.unknown(),
  kind: z.enum(['context', 'fit', 'bytes', 'none']),
  limit: z.number().nullable(),
  used: z.number().nullable(),
});
export type InventedCase = z.infer<typeof invented>;

/** Bodies from public reports, overflows and look-alikes. */
export const reportedCases: readonly ReportedCase[] = lines('overflow.jsonl').map((line) => reported.parse(line));
/** Bodies made up apart from the reported ones: other wordings, envelopes, languages and look-alikes. */
export const inventedCases: readonly InventedCase[] = lines('overflow-unseen.jsonl').map((line) =>
  invented.parse(line),
);

function lines(file: string): readonly unknown[] {
  const text = readFileSync(new URL(`../../fixtures/${file}`, import.meta.url), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
}
