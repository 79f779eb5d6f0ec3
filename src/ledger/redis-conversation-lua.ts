/**
 * What the scripts of a conversation share, in Lua 5.1: its fields, its places and writes of nodes. Everything is checked
 * before anything is written, because what a script wrote before an error stays.
 *
 * `it`: the conversation's fields as text; absent ones are nil. A place: `{depth, predecessor, nearest command at or before it
 * or false}` with depth 1 for a spine's first node; of a summary `{0, ROOT, false, count, last covered, operation}`.
 *
 * The index has one entry for each thing that was set at a node, ordered as bytes: `S<depth> <last> <seq> <summary>`,
 * `M<model> <depth> <head> <seq> <estimated> <measured>` for a call that calibrates, `K<kind> <depth> <head> ` for a mark and
 * `R<reply> <seq> <call>`. Depth and seq have ten digits.
 */
export const CONVERSATION = String.raw`
local FIELDS, NODES, PLACES, ORDER, COUNTS, DELETED, TEXTS, TEXT_ORDER, CALLS, CALL_ORDER, MARKS, INDEX, LEASES, CACHE =
  unpack(KEYS)
local ROOT = 'ROOT'

local it = {}
local flat = redis.call('HGETALL', FIELDS)
for at = 1, #flat, 2 do it[flat[at]] = flat[at + 1] end

-- For reads another tenant's conversation is simply not there; the operator names no tenant.
local isReadable = it.tenant ~= nil and (ask.tenant == nil or it.tenant == ask.tenant)

local function absent()
  if not isReadable then return refused('conversation_not_found', 'conversation') end
  if it.importing then return refused('store_unavailable') end
end

local function placeOf(id)
  local packed = redis.call('HGET', PLACES, id)
  return packed and cjson.decode(packed) or nil
end

local function isDeleted(id)
  return redis.call('HEXISTS', DELETED, id) == 1
end

-- The place of a node that stands on a spine, or nil.
local function chainPlace(id)
  local place = placeOf(id)
  return place and place[1] > 0 and place or nil
end

local function ten(number)
  return string.format('%010d', number)
end

-- The entries of the index that begin so; limits as in a command.
local function entries(start, ...)
  return redis.call('ZRANGEBYLEX', INDEX, '[' .. start, '[' .. start .. '\255', ...)
end

local function unindex(start)
  redis.call('ZREMRANGEBYLEX', INDEX, '[' .. start, '[' .. start .. '\255')
end
`;

/** Reads of a chain, given as one text of ids of equal width: only those that are needed are cut out of it. */
export const CHAIN = String.raw`
local width = tonumber(ask.width)
local length = tonumber(ask.length)

local function link(position)
  local from = (position - 1) * width
  local id = string.sub(ask.chain, from + 1, from + width)
  local pad = string.find(id, '\0', 1, true)
  return pad and string.sub(id, 1, pad - 1) or id
end

-- How many ids from the start are stored: known is a prefix, because an id names its whole prefix (SPEC 1.4).
local function knownPrefix()
  local low, high = 0, length
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if redis.call('HEXISTS', PLACES, link(middle)) == 1 then low = middle else high = middle - 1 end
  end
  return low
end

-- Whether the place is that of the chain's id at a position.
local function stands(place, position)
  return place ~= nil and place[1] == position and place[2] == (position > 1 and link(position - 1) or ROOT)
end
`;

/** What was set at the deepest node of a spine; `linkAt` gives its id at a depth. */
export const DEEPEST = String.raw`
-- The rest of the last entry of a kind at the deepest node that has one, not deeper than 'depth', and how deep it lies. Depths
-- at which no branch has any are leapt over.
local function deepest(kind, depth, linkAt)
  while depth > 0 do
    local top = kind .. ten(depth) .. ' ' .. linkAt(depth) .. ' '
    local found = redis.call('ZREVRANGEBYLEX', INDEX, '[' .. top .. '\255', '[' .. kind, 'LIMIT', 0, 1)[1]
    if not found then return nil end
    if string.sub(found, 1, #top) == top then return string.sub(found, #top + 1), depth end
    local reached = tonumber(string.sub(found, #kind + 1, #kind + 10))
    depth = reached < depth and reached or depth - 1
  end
end

-- The active summary under the policy and how many nodes it covers (SPEC 3.4), or nil.
local function activeOn(depth, linkAt)
  if ask.policy == 'session' then
    local place = it.active and placeOf(it.active)
    if place and place[4] <= depth and linkAt(place[4]) == place[5] then return it.active, place[4] end
    return nil
  end
  local found, count = deepest('S', depth, linkAt)
  return found and string.sub(found, 12), count
end
`;

/** Writes: `set` and `add` change a field, `save` makes that last and lets all keys expire together. */
export const WRITES = String.raw`
local changed = {}

local function set(name, value)
  it[name] = value
  changed[name] = true
end

local function add(name, number)
  set(name, (tonumber(it[name]) or 0) + number)
end

local function save()
  local there, gone = {}, {}
  for name in pairs(changed) do
    if it[name] == nil then
      gone[#gone + 1] = name
    else
      there[#there + 1] = name
      there[#there + 1] = it[name]
    end
  end
  if #there > 0 then redis.call('HSET', FIELDS, unpack(there)) end
  if #gone > 0 then redis.call('HDEL', FIELDS, unpack(gone)) end
  -- One moment for all: no key may outlive the others. The cache has an end of its own.
  local expiry
  if ask.retentionMs then
    local time = redis.call('TIME')
    expiry = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ask.retentionMs))
  end
  for _, key in ipairs(KEYS) do
    if key ~= CACHE then
      if expiry then redis.call('PEXPIREAT', key, expiry) else redis.call('PERSIST', key) end
    end
  end
end

-- What the directory is told of the conversation.
local function state(kind, ...)
  return {kind, it.usedAt, it.bytes or '0', ...}
end

-- Lifts the tombstones of these ids; how many that were.
local function restore(ids)
  local lifted = 0
  for from = 1, #ids, 500 do
    lifted = lifted + redis.call('HDEL', DELETED, unpack(ids, from, math.min(from + 499, #ids)))
  end
  if lifted > 0 then add('revision', 1) end
  return lifted
end

-- Stores a text once by its digest.
local function storeText(digest, bytes, text)
  if redis.call('HSETNX', TEXTS, digest, text) == 0 then return end
  add('textSeq', 1)
  add('bytes', bytes)
  redis.call('ZADD', TEXT_ORDER, it.textSeq, digest)
end

-- Values of a node: id, predecessor, whether it is a command, count, bytes, record.
local NODE = 6

-- The one insertion of a node; its values begin at ARGV[at]. Gives its place.
local function append(at, place)
  local id = ARGV[at]
  add('seq', 1)
  add('nodes', 1)
  add('bytes', ARGV[at + 4])
  redis.call('HSET', NODES, id, it.seq .. ' ' .. ARGV[at + 5])
  redis.call('HSET', PLACES, id, cjson.encode(place))
  redis.call('ZADD', ORDER, it.seq, id)
  if ARGV[at + 3] ~= '' then redis.call('HSET', COUNTS, id, ARGV[at + 3]) end
  return place
end

-- Where a chain node stands that follows a place.
local function behind(at, before)
  local command = before and before[3] or false
  if ARGV[at + 2] ~= '' then command = ARGV[at] end
  return {(before and before[1] or 0) + 1, ARGV[at + 1], command}
end

local function indexSummary(id, place)
  redis.call('ZADD', INDEX, 0, 'S' .. ten(place[4]) .. ' ' .. place[5] .. ' ' .. ten(it.seq) .. ' ' .. id)
  add('summaries', 1)
end

-- Values of a call: id, head, what it calibrates: model and the two numbers, or nothing; record.
local CALL = 5

local function storeCall(at, depth)
  local id, head, model, match = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  add('calls', 1)
  add('callSeq', 1)
  redis.call('HSET', CALLS, id, ARGV[at + 4])
  redis.call('ZADD', CALL_ORDER, it.callSeq, id)
  if match ~= '' then
    local seq = ten(it.callSeq)
    redis.call('ZADD', INDEX, 0, 'M' .. model .. ' ' .. ten(depth) .. ' ' .. head .. ' ' .. seq .. ' ' .. match)
  end
end

local function indexReply(call, reply)
  redis.call('ZADD', INDEX, 0, 'R' .. reply .. ' ' .. ten(it.callSeq) .. ' ' .. call)
end

-- Values of a mark: kind, head, record.
local MARK = 3

local function storeMark(at, depth)
  local kind, head = ARGV[at], ARGV[at + 1]
  redis.call('HSET', MARKS, kind .. ' ' .. head, ARGV[at + 2])
  redis.call('ZADD', INDEX, 0, 'K' .. kind .. ' ' .. ten(depth) .. ' ' .. head .. ' ')
end
`;
