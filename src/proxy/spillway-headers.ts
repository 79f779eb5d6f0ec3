import { SpillwayError } from '../core/errors.js';

/** What a client asks of Spillway itself, in headers that never go upstream. */
export interface SpillwayHeaders {
  /** The name of the conversation (SPEC 1.2), or null. */
  readonly conversation: string | null;
  /** The messages are appended to what the ledger holds (SPEC 1.6). */
  readonly append: boolean;
  /** Where to append, or null for HEAD. */
  readonly predecessor: string | null;
  /** The node that spawned this branch (SPEC 2.2), or null. */
  readonly caller: string | null;
  readonly advanceHead: boolean;
  /** This request passes untouched and unrecorded. */
  readonly bypass: boolean;
}

const NAME = /^[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?$/;
const NODE_ID = /^(?:[A-Za-z0-9_-]{32}|summary_[A-Za-z0-9_-]{8,64})$/;

/** Reads them; `SpillwayError('invalid_header')` names the one at fault and the reason. */
export function readSpillwayHeaders(headers: Readonly<Record<string, string>>): SpillwayHeaders {
  const conversation = text(headers, 'x-spillway-conversation', NAME, '1 to 200 printable ASCII characters');
  const append = flag(headers, 'x-spillway-append', false);
  const predecessor = text(headers, 'x-spillway-predecessor', NODE_ID, 'a node id');
  if (append && conversation === null) {
    throw new SpillwayError(
      'invalid_header',
      'x-spillway-append needs x-spillway-conversation to say where to append',
      'x-spillway-append',
    );
  }
  if (predecessor !== null && !append) {
    throw new SpillwayError(
      'invalid_header',
      'x-spillway-predecessor needs x-spillway-append: true',
      'x-spillway-predecessor',
    );
  }
  return {
    conversation,
    append,
    predecessor,
    caller: text(headers, 'x-spillway-caller', NODE_ID, 'a node id'),
    advanceHead: flag(headers, 'x-spillway-advance-head', true),
    bypass: flag(headers, 'x-spillway-bypass', false),
  };
}

function text(headers: Readonly<Record<string, string>>, name: string, form: RegExp, expected: string): string | null {
  const value = headers[name];
  if (value === undefined) return null;
  if (!form.test(value)) throw new SpillwayError('invalid_header', `${name} must be ${expected}`, name);
  return value;
}

function flag(headers: Readonly<Record<string, string>>, name: string, otherwise: boolean): boolean {
  const value = headers[name]?.toLowerCase();
  if (value === undefined) return otherwise;
  if (value !== 'true' && value !== 'false')
    throw new SpillwayError('invalid_header', `${name} must be true or false`, name);
  return value === 'true';
}
