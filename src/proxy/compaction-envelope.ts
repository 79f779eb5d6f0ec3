import type { Sign } from './tenant.js';

/** What a client holds in place of a history that was compacted because it asked for that. */
export interface Envelope {
  /** The conversation whose history it stands for. */
  readonly conversation: string;
  /** Instructions in that history, as wire messages: they stay verbatim (SPEC 4.8). */
  readonly pinned: readonly unknown[];
  /** A summary's content, marker included (SPEC 3.1). */
  readonly content: string;
}

/** What every envelope of Spillway's begins with, whatever its version; nothing in it is escaped in JSON. */
export const ENVELOPE_OPENING = 'spillway.compaction.';

const VERSION = `${ENVELOPE_OPENING}1.`;

/** The envelope as text. Whoever holds it can read it, and cannot change it: it is bound to the tenant and the server's secret. */
export function sealEnvelope(envelope: Envelope, tenant: string, sign: Sign): string {
  const text = JSON.stringify(envelope);
  return `${VERSION}${proofOf(text, tenant, sign)}.${text}`;
}

/** `foreign`: not made by any Spillway. `forged`: not by this one for this tenant, or under a secret that is no more. */
export function openEnvelope(sealed: string, tenant: string, sign: Sign): Envelope | 'foreign' | 'forged' {
  if (!sealed.startsWith(ENVELOPE_OPENING)) return 'foreign';
  const [, proof, text] = /^([A-Za-z0-9_-]+)\.(.*)$/s.exec(sealed.slice(VERSION.length)) ?? [];
  if (!sealed.startsWith(VERSION) || proof === undefined || text === undefined) return 'forged';
  // Signed once more, so that how long the comparison takes tells nothing of the right proof.
  if (sign(proof) !== sign(proofOf(text, tenant, sign))) return 'forged';
  const envelope: unknown = JSON.parse(text);
  return isEnvelope(envelope) ? envelope : 'forged';
}

function proofOf(text: string, tenant: string, sign: Sign): string {
  return sign(JSON.stringify(['compaction', tenant, text]));
}

function isEnvelope(value: unknown): value is Envelope {
  if (typeof value !== 'object' || value === null) return false;
  if (!('conversation' in value && 'pinned' in value && 'content' in value)) return false;
  return typeof value.conversation === 'string' && Array.isArray(value.pinned) && typeof value.content === 'string';
}
