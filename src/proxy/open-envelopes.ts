import { SpillwayError } from '../core/errors.js';
import type { CompactionForm } from '../dialects/dialect.js';
import { ENVELOPE_OPENING, openEnvelope } from './compaction-envelope.js';
import type { Sign } from './tenant.js';
import type { RequestBody } from './turn.js';

/** A request with the summaries that it refers to by envelope. */
export interface OpenedBody {
  readonly body: RequestBody;
  /** The conversation that goes on with it, if its list begins with an envelope; null otherwise. */
  readonly conversation: string | null;
}

/**
 * Puts what Spillway's own envelopes stand for in their place: no upstream can read them, and only an authentic one is a summary. What
 * is no envelope of any Spillway stays as it came. `body` holds valid JSON. Rejects one that is not authentic for this tenant with
 * `invalid_request`.
 */
export function openEnvelopes(body: RequestBody, form: CompactionForm | null, tenant: string, sign: Sign): OpenedBody {
  if (form === null || !body.text.includes(ENVELOPE_OPENING)) return { body, conversation: null };
  let conversation: string | null = null;
  const text = form.expand(body.text, ({ content, field, isFirst }) => {
    const envelope = openEnvelope(content, tenant, sign);
    if (envelope === 'foreign') return null;
    if (envelope === 'forged') throw notOurs(field);
    if (isFirst) conversation = envelope.conversation;
    return envelope;
  });
  if (text === body.text) return { body, conversation: null };
  const original = new TextEncoder().encode(text);
  return { body: { original, text, textBytes: original.byteLength, rewritten: true }, conversation };
}

function notOurs(field: string): SpillwayError {
  const reason =
    'this compaction was not made by this server for this credential, or the secret it was made with is no more: send the messages that it stands for, or leave it out';
  return new SpillwayError('invalid_request', reason, field);
}
