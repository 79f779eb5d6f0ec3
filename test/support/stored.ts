import type { StartedPair } from './start.js';

/** A node as Spillway's API tells it. */
export interface StoredNode {
  readonly id: string;
  readonly predecessor: string;
  readonly caller: string | null;
  readonly role: string;
  readonly content: unknown;
  readonly metadata: {
    readonly covers_ids?: readonly string[];
    readonly command?: boolean;
    readonly trigger?: string;
    readonly [key: string]: unknown;
  };
  readonly tokens: number | null;
}

export interface StoredCall {
  readonly action: string;
  readonly outcome: string;
  readonly status: number | null;
  readonly reads: readonly string[];
  readonly replies: readonly string[];
  readonly estimated_tokens: number | null;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number } | null;
  readonly body_digest: string;
}

export interface StoredConversation {
  readonly id: string;
  readonly tenant: string;
  readonly name: string | null;
  readonly session: string | null;
  readonly head: string;
  readonly nodes: number;
  readonly calls: number;
  readonly summaries: number;
}

/** Every conversation, the latest used first. */
export async function conversationsOf(pair: StartedPair): Promise<readonly StoredConversation[]> {
  return (await pair.api('/conversations?limit=200'))['data'] as StoredConversation[];
}

/** The one conversation there is. */
export async function onlyConversation(pair: StartedPair): Promise<StoredConversation> {
  const [only, ...more] = await conversationsOf(pair);
  if (only === undefined || more.length > 0) throw new Error(`${more.length + (only ? 1 : 0)} conversations, not one`);
  return only;
}

/** Every node of a conversation, in the order written. */
export async function nodesOf(pair: StartedPair, conversation: string): Promise<readonly StoredNode[]> {
  return (await pair.api(`/conversations/${conversation}/nodes?limit=1000`))['data'] as StoredNode[];
}

/** The call that a response's headers name. */
export async function callOf(pair: StartedPair, headers: Headers | Record<string, unknown>): Promise<StoredCall> {
  const read = (name: string): string => String(headers instanceof Headers ? headers.get(name) : headers[name]);
  const path = `/conversations/${read('x-spillway-conversation')}/calls/${read('x-spillway-call')}`;
  return (await pair.api(path)) as unknown as StoredCall;
}
