import { randomUUID } from 'node:crypto';
import type { Clock, ConversationKey } from '../core/ports.js';
import type { RedisConnection } from './redis-connection.js';
import type { RedisKeys } from './redis-keys.js';
import { integerAt } from './redis-reply.js';
import { runScript, type Argument, type Fields, type RedisScript } from './redis-script.js';

export interface RedisConversationsOptions {
  readonly connection: RedisConnection;
  readonly keys: RedisKeys;
  readonly clock: Clock;
  /** Every key of a conversation expires this long after its last use; null keeps it for ever. */
  readonly retentionMs: number | null;
  /** Told when a conversation was used or grew: what the directory should know of it. */
  onState(conversation: ConversationKey, state: { readonly usedAt: number; readonly bytes: number }): void;
}

/** Runs the scripts of a conversation, each in one round trip on all of its keys. */
export class RedisConversations {
  readonly #options: RedisConversationsOptions;

  constructor(options: RedisConversationsOptions) {
    this.#options = options;
  }

  now(): number {
    return this.#options.clock();
  }

  /** For one call of a method: a script that is sent twice under one name answers twice and does once. */
  operation(): string {
    return randomUUID();
  }

  /** Runs one on a conversation, there or not. A tenant of null asks as the operator. */
  run(
    key: { readonly id: string; readonly tenant: string | null },
    script: RedisScript,
    fields: Fields = {},
    values: readonly Argument[] = [],
  ): Promise<readonly unknown[]> {
    const { connection, keys } = this.#options;
    return runScript(connection, script, keys.conversation(key.id), { tenant: key.tenant, ...fields }, values);
  }

  /** One that writes what is kept: it sets the expiry, and the state that it may answer goes to the directory. */
  async write(
    key: ConversationKey,
    script: RedisScript,
    fields: Fields = {},
    values: readonly Argument[] = [],
  ): Promise<readonly unknown[]> {
    const { retentionMs, onState } = this.#options;
    const reply = await this.run(key, script, { retentionMs, ...fields }, values);
    if (STATEFUL.has(reply[0])) onState(key, { usedAt: integerAt(reply, 1), bytes: integerAt(reply, 2) });
    return reply;
  }
}

const STATEFUL: ReadonlySet<unknown> = new Set(['opened', 'closed', 'committed', 'done', 'imported']);
