import { z } from 'zod';
import { SpillwayError } from '../core/errors.js';

/** Largest body of an API request. */
const LIMIT_BYTES = 64 * 1024;

/** Checks what a client sent against a schema. Throws `invalid_request` that names the first field at fault and why. */
export function validate<T>(schema: z.ZodType<T>, given: unknown): T {
  const read = schema.safeParse(given, { reportInput: true });
  if (read.success) return read.data;
  const { field, reason } = faultOf(read.error.issues[0]);
  throw new SpillwayError('invalid_request', `${field ?? 'The body'} ${reason}`, field);
}

function faultOf(issue: z.core.$ZodIssue | undefined): { readonly field: string | null; readonly reason: string } {
  if (issue?.code === 'unrecognized_keys') {
    return { field: issue.keys[0] ?? null, reason: 'is no field of this request' };
  }
  return { field: issue?.path.join('.') || null, reason: issue === undefined ? 'is invalid' : reasonOf(issue) };
}

function reasonOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'too_small') return 'must not be empty';
  if (issue.code === 'too_big') return `must have at most ${issue.maximum} characters`;
  if (issue.code !== 'invalid_type') return issue.message;
  if (issue.input === undefined) return 'is missing';
  return issue.expected === 'object' ? 'must be a JSON object' : `must be a ${issue.expected}`;
}

/** The JSON of a small body; an absent or empty one is `{}`. Throws `body_too_large`, `invalid_json`. */
export async function readJson(body: AsyncIterable<Uint8Array> | null): Promise<unknown> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let bytes = 0;
  let text = '';
  try {
    for await (const chunk of body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > LIMIT_BYTES)
        throw new SpillwayError('body_too_large', `The body is larger than ${LIMIT_BYTES} bytes.`, 'body');
      text += decoder.decode(chunk, { stream: true });
    }
    text += decoder.decode();
    return text.trim() === '' ? {} : JSON.parse(text);
  } catch (error) {
    if (error instanceof TypeError || error instanceof SyntaxError) {
      throw new SpillwayError('invalid_json', 'The body is not JSON in UTF-8.', 'body');
    }
    throw error;
  }
}

/** A whole number written in a query. */
export function queryNumber(min: number, max: number) {
  return z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`);
}

/** `true` or `false` written in a query; absent is false. */
export const queryFlag = z
  .enum(['true', 'false'], { error: 'must be true or false' })
  .prefault('false')
  .transform((value) => value === 'true');
