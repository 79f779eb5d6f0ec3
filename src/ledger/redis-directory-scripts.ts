import { script } from './redis-script.js';

/**
 * What the scripts of a tenant's directory share. USED orders conversations by `<sixteen digits of last use>:<id>`, all of one
 * score, so that a page begins exactly behind an entry. KNOWN has `<last use> <bytes>` by id, TOTAL the sum of all bytes.
 */
const DIRECTORY = String.raw`
local USED, KNOWN, TOTAL, REFERENCES, REFERENCED, WINDOWS = unpack(KEYS)

local function member(usedAt, id)
  return string.format('%016d', usedAt) .. ':' .. id
end

local function forget(id)
  local usedAt, bytes = string.match(redis.call('HGET', KNOWN, id) or '', '^(%d+) (%d+)$')
  if not usedAt then return end
  redis.call('ZREM', USED, member(usedAt, id))
  redis.call('HDEL', KNOWN, id)
  redis.call('DECRBY', TOTAL, bytes)
  if redis.call('EXISTS', USED) == 0 then redis.call('UNLINK', TOTAL) end
end

local function expire()
  for _, key in ipairs({USED, KNOWN, TOTAL, REFERENCES, REFERENCED}) do
    if ask.retentionMs then redis.call('PEXPIRE', key, ask.retentionMs) else redis.call('PERSIST', key) end
  end
end
`;

/** A later use of a conversation than is known, and its size. */
export const noteUse = script(
  DIRECTORY,
  String.raw`
local usedAt = string.match(redis.call('HGET', KNOWN, ask.id) or '', '^%d+')
if usedAt and tonumber(usedAt) > tonumber(ask.usedAt) then return {'known'} end
forget(ask.id)
redis.call('ZADD', USED, 0, member(ask.usedAt, ask.id))
redis.call('HSET', KNOWN, ask.id, ask.usedAt .. ' ' .. ask.bytes)
redis.call('INCRBY', TOTAL, ask.bytes)
expire()
return {'noted'}
`,
);

/** A conversation that is no more, or, where it `keeps` on, references to nodes of it that are no more: the values. */
export const forgetConversation = script(
  DIRECTORY,
  String.raw`
local start = ask.part .. ' '
if not ask.keeps then forget(ask.id) end
local isGone = {}
for at = rest, #ARGV do isGone[ARGV[at]] = true end
for _, entry in ipairs(redis.call('ZRANGEBYLEX', REFERENCED, '[' .. start, '[' .. start .. '\255')) do
  local node, id = string.match(string.sub(entry, #start + 1), '^(%S+) (.*)$')
  if not ask.keeps or isGone[node] then
    redis.call('HDEL', REFERENCES, id)
    redis.call('ZREM', REFERENCED, entry)
  end
end
return {'forgotten'}
`,
);

/** Members in the order of use, or the latest first, behind a position or from the first on. */
export const readUsed = script(
  DIRECTORY,
  String.raw`
local members
if ask.ascending then
  members = redis.call('ZRANGEBYLEX', USED, ask.position and '(' .. ask.position or '-', '+', 'LIMIT', 0, ask.limit)
else
  members = redis.call('ZREVRANGEBYLEX', USED, ask.position and '(' .. ask.position or '+', '-', 'LIMIT', 0, ask.limit)
end
return {'used', members}
`,
);

export const readUsage = script(
  DIRECTORY,
  String.raw`
return {'usage', redis.call('ZCARD', USED), redis.call('GET', TOTAL) or '0', redis.call('EXISTS', WINDOWS)}
`,
);

/** Values: for each reference its id, its record, its conversation and its node, the last two as parts. */
export const refer = script(
  DIRECTORY,
  String.raw`
for at = rest, #ARGV - 3, 4 do
  local id, record, place = ARGV[at], ARGV[at + 1], ARGV[at + 2] .. ' ' .. ARGV[at + 3]
  local before = redis.call('HGET', REFERENCES, id)
  if before then redis.call('ZREM', REFERENCED, string.match(before, '^[^\n]*') .. ' ' .. id) end
  redis.call('HSET', REFERENCES, id, place .. '\n' .. record)
  redis.call('ZADD', REFERENCED, 0, place .. ' ' .. id)
end
expire()
return {'referred'}
`,
);

/** Values: the ids. */
export const resolve = script(
  DIRECTORY,
  String.raw`
local found = {}
for at = rest, #ARGV do
  local record = redis.call('HGET', REFERENCES, ARGV[at])
  if record then found[#found + 1] = string.match(record, '^[^\n]*\n(.*)$') end
end
return {'references', found}
`,
);

/** Every window is its expiry and its record by its key; those that have expired end here. */
export const readWindows = script(
  DIRECTORY,
  String.raw`
local found = {}
local windows = redis.call('HGETALL', WINDOWS)
for at = 1, #windows, 2 do
  local expiry, record = string.match(windows[at + 1], '^(%d+) (.*)$')
  if tonumber(expiry) > tonumber(ask.now) then
    found[#found + 1] = record
  else
    redis.call('HDEL', WINDOWS, windows[at])
  end
end
return {'windows', found}
`,
);

export const readWindow = script(
  DIRECTORY,
  String.raw`
local stored = redis.call('HGET', WINDOWS, ask.key)
return {'window', stored and {stored} or {}}
`,
);

/** Writes a window in the place of what was read there, if that has not changed since. */
export const replaceWindow = script(
  DIRECTORY,
  String.raw`
local stored = redis.call('HGET', WINDOWS, ask.key)
if stored == ask.after then return {'replaced'} end
if stored ~= (ask.before or false) then return {'changed'} end
redis.call('HSET', WINDOWS, ask.key, ask.after)
return {'replaced'}
`,
);

export const forgetWindow = script(
  DIRECTORY,
  String.raw`
local expiry = string.match(redis.call('HGET', WINDOWS, ask.key) or '', '^%d+')
redis.call('HDEL', WINDOWS, ask.key)
return {(expiry and tonumber(expiry) > tonumber(ask.now)) and 'forgotten' or 'unknown'}
`,
);

export const forgetWindows = script(
  DIRECTORY,
  String.raw`
redis.call('UNLINK', WINDOWS)
return {'forgotten'}
`,
);
