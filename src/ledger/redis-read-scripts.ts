import { CONVERSATION, DEEPEST } from './redis-conversation-lua.js';
import { script } from './redis-script.js';

/** Nodes by id as a flat list of id, record, count and tombstone; those that are not stored are left out. */
const NODES_OF = String.raw`
local function nodesOf(ids)
  local found = {}
  for from = 1, #ids, 500 do
    local to = math.min(from + 499, #ids)
    local records = redis.call('HMGET', NODES, unpack(ids, from, to))
    local counts = redis.call('HMGET', COUNTS, unpack(ids, from, to))
    local deleted = redis.call('HMGET', DELETED, unpack(ids, from, to))
    for index, record in ipairs(records) do
      if record then
        for _, value in ipairs({ids[from + index - 1], record, counts[index] or '', deleted[index] or ''}) do
          found[#found + 1] = value
        end
      end
    end
  end
  return found
end
`;

/** The conversation's fields; empty where it is not there. */
export const readFields = script(
  CONVERSATION,
  String.raw`
return {'fields', isReadable and flat or {}}
`,
);

/** The ids of a spine, first to last, with what is active on it. */
export const readSpine = script(
  CONVERSATION,
  DEEPEST,
  String.raw`
if absent() then return absent() end
local head = ask.head or it.head
if head ~= ROOT and (not chainPlace(head) or isDeleted(head)) then return refused('node_not_found', 'head') end
local ids = {}
local place = head ~= ROOT and placeOf(head) or nil
local depth = place and place[1] or 0
while place do
  ids[place[1]] = head
  head = place[2]
  place = head ~= ROOT and placeOf(head) or nil
end
local active, covered = activeOn(depth, function(position) return ids[position] end)
local record, count = '', ''
if active then
  record = redis.call('HGET', NODES, active)
  count = redis.call('HGET', COUNTS, active) or ''
end
return {'spine', flat, ids, {active or '', covered or 0, record, count}}
`,
);

/** Values: the ids. */
export const readNodes = script(
  CONVERSATION,
  NODES_OF,
  String.raw`
return {'nodes', isReadable and nodesOf({unpack(ARGV, rest)}) or {}}
`,
);

export const readNodesInOrder = script(
  CONVERSATION,
  NODES_OF,
  String.raw`
local ids = isReadable
  and redis.call('ZRANGEBYSCORE', ORDER, '(' .. ask.after, '+inf', 'LIMIT', 0, ask.limit) or {}
return {'nodes', nodesOf(ids)}
`,
);

/** One value of a hash of the conversation: a call by its id, or a text by its digest. */
export const readValue = script(
  CONVERSATION,
  String.raw`
local hashes = {call = CALLS, text = TEXTS}
local value = isReadable and redis.call('HGET', hashes[ask.of], ask.field)
return {'value', value and {value} or {}}
`,
);

/** The records of the last calls, newest first, or of those that recorded a reply, oldest first. */
export const readCalls = script(
  CONVERSATION,
  String.raw`
local calls = {}
if isReadable then
  local ids = {}
  if ask.reply then
    for _, entry in ipairs(entries('R' .. ask.reply .. ' ')) do ids[#ids + 1] = string.sub(entry, #ask.reply + 14) end
  else
    ids = redis.call('ZREVRANGE', CALL_ORDER, 0, ask.limit - 1)
  end
  for _, id in ipairs(ids) do calls[#calls + 1] = redis.call('HGET', CALLS, id) end
end
return {'calls', calls}
`,
);

/**
 * The records behind a position of an export, to about a megabyte, and whether those were the last. Each is three values:
 * its type, its position and, for what is not a node, its name; a node's are in the second list.
 */
export const readExport = script(
  CONVERSATION,
  NODES_OF,
  String.raw`
if absent() then return absent() end
if (it.revision or '0') ~= ask.revision then return {'changed', it.revision or '0'} end
local records, nodes, bytes = {}, {}, 0
local after = ask.position
local limit = tonumber(ask.records)

local function isFull()
  return #records >= limit or bytes >= tonumber(ask.bytes)
end

local function take(kind, position, size, ...)
  bytes = bytes + size
  records[#records + 1] = {kind, position, ...}
end

local function behindPosition(names)
  table.sort(names)
  local found = {}
  for _, name in ipairs(names) do
    if name > after then found[#found + 1] = name end
  end
  return found
end

local readers = {
  instruction = function()
    for _, digest in ipairs(behindPosition(redis.call('ZRANGEBYSCORE', TEXT_ORDER, '-inf', ask.instructionUntil))) do
      if isFull() then return end
      local text = redis.call('HGET', TEXTS, digest)
      take('instruction', digest, #text, text)
    end
  end,
  node = function()
    local found = redis.call('ZRANGEBYSCORE', ORDER, '(' .. after, ask.nodeUntil, 'WITHSCORES', 'LIMIT', 0, limit)
    for at = 1, #found, 2 do
      if isFull() then return end
      take('node', found[at + 1], redis.call('HSTRLEN', NODES, found[at]), found[at])
      nodes[#nodes + 1] = found[at]
    end
  end,
  call = function()
    local found = redis.call('ZRANGEBYSCORE', CALL_ORDER, '(' .. after, ask.callUntil, 'WITHSCORES', 'LIMIT', 0, limit)
    for at = 1, #found, 2 do
      if isFull() then return end
      local record = redis.call('HGET', CALLS, found[at])
      take('call', found[at + 1], #record, record)
    end
  end,
  mark = function()
    for _, name in ipairs(behindPosition(redis.call('HKEYS', MARKS))) do
      if isFull() then return end
      local seq = redis.call('ZSCORE', ORDER, string.match(name, ' (.*)$'))
      if seq and tonumber(seq) <= tonumber(ask.nodeUntil) then
        local record = redis.call('HGET', MARKS, name)
        take('mark', name, #record, record)
      end
    end
  end,
}

local isBehind = false
for _, kind in ipairs({'instruction', 'node', 'call', 'mark'}) do
  if isBehind or kind == ask.type then
    if isBehind then after = (kind == 'call' or kind == 'node') and '0' or '' end
    isBehind = true
    if not isFull() then readers[kind]() end
  end
end
return {'records', flat, records, nodesOf(nodes), isFull() and 1 or 0}
`,
);
