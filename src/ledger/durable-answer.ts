import { SpillwayError, type ErrorCode } from '../core/errors.js';

/** What a method came to, in a form that a call between objects passes on whole: an error would lose its code and field. */
export type Answer<T> =
  | { readonly value: T }
  | { readonly code: ErrorCode; readonly message: string; readonly field: string | null };

/** Anything but a `SpillwayError` is a defect, and rejects as it is. */
export async function answer<T>(work: () => Promise<T>): Promise<Answer<T>> {
  try {
    return { value: await work() };
  } catch (error) {
    if (!(error instanceof SpillwayError)) throw error;
    return { code: error.code, message: error.message, field: error.field };
  }
}

/** The inverse, at the caller; an object that cannot be reached, or failed, is a store that cannot answer. */
export async function unwrap<T>(answered: Promise<Answer<T>>): Promise<T> {
  const result = await answered.catch((error: unknown) => {
    throw new SpillwayError('store_unavailable', 'The store cannot answer.', null, error);
  });
  if ('value' in result) return result.value;
  throw new SpillwayError(result.code, result.message, result.field);
}
