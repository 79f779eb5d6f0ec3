import { CANONICAL_VERSION, chainIds, rootDigest } from '../core/canonical.js';
import type { Message } from '../core/message.js';
import type { Hash, NewConversation, SummaryPolicy } from '../core/ports.js';
import type { DialectName } from '../dialects/dialect.js';

/**
 * Headers in which real clients send a session id, first match first; behind them come fields of the body. It only groups
 * conversations (SPEC 1.2).
 */
const SESSION_HEADERS: readonly string[] = [
  'x-claude-code-session-id',
  'session-id',
  'thread-id',
  'x-session-id',
  'x-session-affinity',
];

/** An id that Spillway made, as it stands in `x-spillway-conversation`. */
const CONVERSATION_ID = /^c_[A-Za-z0-9_-]{30}$/;

export interface IdentityInput {
  readonly tenant: string;
  readonly dialect: DialectName;
  /** The whole chain, first to last; at least one message. */
  readonly messages: readonly Message[];
  /** `x-spillway-conversation`, or null. */
  readonly named: string | null;
  /** A session id from the headers or the body, or null. */
  readonly session: string | null;
  readonly hash: Hash;
}

export interface Identity {
  readonly conversation: NewConversation;
  /** Ids of the messages, in order. */
  readonly chain: readonly string[];
}

/**
 * Which conversation a full history belongs to, and the node ids of its messages (SPEC 1.2, 1.4): from the name a client
 * gave it, otherwise from tenant, session and first message. Nothing is matched by likeness.
 */
export function identify(input: IdentityInput): Identity {
  const { tenant, dialect, hash, session } = input;
  const chain = chainIds(hash, rootDigest(hash, tenant, dialect, CANONICAL_VERSION), input.messages);
  const id =
    input.named === null
      ? digestId(hash, ['first', tenant, session, chain[0]])
      : namedId(hash, tenant, dialect, input.named);
  const name = input.named === null || input.named === id ? null : input.named;
  return { conversation: { tenant, id, dialect, canonicalVersion: CANONICAL_VERSION, name, session }, chain };
}

/** The id of the conversation that a client calls by a name, of its format's own, or by the id it was told. */
export function namedId(hash: Hash, tenant: string, dialect: DialectName, named: string): string {
  if (CONVERSATION_ID.test(named)) return named;
  // The first format came without its name in it, and its ids stay.
  return digestId(hash, dialect === 'chat-completions' ? ['named', tenant, named] : ['named', tenant, dialect, named]);
}

/** The session id that a request carries in its headers, or null. */
export function sessionOf(headers: Readonly<Record<string, string>>): string | null {
  for (const name of SESSION_HEADERS) {
    const value = headers[name];
    if (value !== undefined && value !== '') return value.slice(0, 200);
  }
  return null;
}

/**
 * SPEC 3.4: `session` where the client named the conversation itself, `spine` everywhere else, an id of ours quoted back
 * included; a setting forces one.
 */
export function policyFor(named: string | null, forced: SummaryPolicy | 'auto'): SummaryPolicy {
  if (forced !== 'auto') return forced;
  return named === null || CONVERSATION_ID.test(named) ? 'spine' : 'session';
}

function digestId(hash: Hash, parts: readonly unknown[]): string {
  return `c_${hash(JSON.stringify(parts)).slice(0, 30)}`;
}
