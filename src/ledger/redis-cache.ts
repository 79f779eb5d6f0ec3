import type { ConversationKey, SharedCache } from '../core/ports.js';
import { CONVERSATION } from './redis-conversation-lua.js';
import type { RedisConversations } from './redis-conversations.js';
import { textsAt } from './redis-reply.js';
import { script } from './redis-script.js';

/** Longer than any clock is wrong: the key must not end before what is in it. */
const SLACK_MS = 60_000;

const readCached = script(
  CONVERSATION,
  String.raw`
local endsAt, value = string.match(isReadable and redis.call('HGET', CACHE, ask.field) or '', '^(%d+) (.*)$')
return {'cached', endsAt and tonumber(endsAt) > tonumber(ask.now) and {value} or {}}
`,
);

/** Nothing is kept of a conversation that is not there: what is erased while a turn of it runs stays erased. */
const writeCached = script(
  CONVERSATION,
  String.raw`
if not isReadable then return {'absent'} end
redis.call('HSET', CACHE, ask.field, ask.endsAt .. ' ' .. ask.value)
local cached = redis.call('HGETALL', CACHE)
for at = 1, #cached, 2 do
  if tonumber(string.match(cached[at + 1], '^%d+')) <= tonumber(ask.now) then redis.call('HDEL', CACHE, cached[at]) end
end
if redis.call('PTTL', CACHE) < tonumber(ask.ttlMs) then redis.call('PEXPIRE', CACHE, ask.ttlMs) end
return {'written'}
`,
);

const dropCached = script(
  CONVERSATION,
  String.raw`
if isReadable then redis.call('HDEL', CACHE, ask.field) end
return {'dropped'}
`,
);

/** Values that several processes share, in the conversation's own slot, so that erasing it takes them along. */
export class RedisCache implements SharedCache {
  readonly #conversations: RedisConversations;

  constructor(conversations: RedisConversations) {
    this.#conversations = conversations;
  }

  async get(conversation: ConversationKey, field: string): Promise<string | null> {
    const fields = { field, now: this.#conversations.now() };
    return textsAt(await this.#conversations.run(conversation, readCached, fields), 1)[0] ?? null;
  }

  async set(conversation: ConversationKey, field: string, value: string, durationMs: number): Promise<void> {
    const now = this.#conversations.now();
    const fields = { field, value, now, endsAt: now + durationMs, ttlMs: durationMs + SLACK_MS };
    await this.#conversations.run(conversation, writeCached, fields);
  }

  async delete(conversation: ConversationKey, field: string): Promise<void> {
    await this.#conversations.run(conversation, dropCached, { field });
  }
}
