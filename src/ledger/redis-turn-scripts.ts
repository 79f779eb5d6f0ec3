import { CHAIN, CONVERSATION, DEEPEST, WRITES } from './redis-conversation-lua.js';
import { script } from './redis-script.js';

/**
 * Opens a turn as soon as everything is there that it needs. Values: the digests of the request's texts; those texts that
 * are brought along, three values each; nodes, from the position `from` on. Answers `missing` with the number of known ids and
 * the digests that are unknown, having written nothing, or `opened`.
 */
export const openTurn = script(
  CONVERSATION,
  CHAIN,
  DEEPEST,
  WRITES,
  String.raw`
if it.tenant and absent() then return absent() end
if ask.expectedHead and it.operation ~= ask.operation and ask.expectedHead ~= (it.head or ROOT) then
  return refused('head_moved', 'expectedHead')
end
local known = knownPrefix()
local last = known > 0 and placeOf(link(known)) or nil
if last and not stands(last, known) then return refused('invalid_request', 'chain') end

local at = rest
local missing, brought = {}, {}
local digests, texts = at, at + ask.digests
local nodes = texts + 3 * ask.texts
for text = texts, nodes - 1, 3 do brought[ARGV[text]] = true end
for digest = digests, texts - 1 do
  local isStored = it.tenant and redis.call('HEXISTS', TEXTS, ARGV[digest]) == 1
  if not isStored and not brought[ARGV[digest]] then missing[#missing + 1] = ARGV[digest] end
end
if #missing > 0 or (known < length and known + 1 < tonumber(ask.from)) then return {'missing', known, missing} end
for position = known + 1, length do
  if redis.call('HEXISTS', PLACES, link(position)) == 1 then return refused('invalid_request', 'chain') end
end

if not it.tenant then
  -- Nothing may be left of one that expired or was evicted in part.
  redis.call('UNLINK', unpack(KEYS))
  for _, name in ipairs({'tenant', 'fixed', 'createdAt'}) do set(name, ask[name]) end
  set('head', ROOT)
  set('usedAt', ask.now)
end
local headBefore = it.head
local isChanged = it.deletedAt ~= nil or known < length
set('deletedAt', nil)
set('operation', ask.operation)
-- Of a spine the deleted part is its end, so that a look at the last known node tells whether there is one (SPEC 2.6).
local buried = {}
for position = known, 1, -1 do
  if not isDeleted(link(position)) then break end
  buried[#buried + 1] = link(position)
end
if #buried > 0 then
  restore(buried)
  isChanged = true
end
for position = known + 1, length do
  local node = nodes + (position - ask.from) * NODE
  last = append(node, behind(node, last))
end
for text = texts, nodes - 1, 3 do storeText(ARGV[text], ARGV[text + 1], ARGV[text + 2]) end
if ask.advanceHead then set('head', link(length)) end
if isChanged or it.head ~= headBefore then set('usedAt', ask.now) end
save()

local active, covered = activeOn(length, link)
local activeRecord, activeCount = '', ''
if active then
  activeRecord = redis.call('HGET', NODES, active)
  activeCount = redis.call('HGET', COUNTS, active) or ''
end
local commands = {}
local command = last[3]
while command do
  table.insert(commands, 1, command)
  local before = placeOf(placeOf(command)[2])
  command = before and before[3]
end
local counts = {}
if ask.tokenizer and redis.call('EXISTS', COUNTS) == 1 then
  for from = (covered or 0) + 1, length, 500 do
    local ids = {}
    for position = from, math.min(from + 499, length) do ids[#ids + 1] = link(position) end
    for index, count in ipairs(redis.call('HMGET', COUNTS, unpack(ids))) do
      local tokens, tokenizer = string.match(count or '', '^(%d+) (.*)$')
      if tokens and tokenizer == ask.tokenizer then
        counts[#counts + 1] = from + index - 1
        counts[#counts + 1] = tokens
      end
    end
  end
end
local marks = {}
for _, kind in ipairs({'latched', 'overflowed'}) do
  local found, depth = deepest('K' .. kind .. ' ', known, link)
  if found then marks[#marks + 1] = redis.call('HGET', MARKS, kind .. ' ' .. link(depth)) end
end
local match = deepest('M' .. ask.model .. ' ', known, link)
return state('opened', it.head, known, {active or '', covered or 0, activeRecord, activeCount}, commands, counts,
  match and string.sub(match, 12) or '', marks)
`,
);

/** Values: the replies, the call if there is one, the marks, and two values for each count. */
export const closeTurn = script(
  CONVERSATION,
  WRITES,
  String.raw`
if absent() then return absent() end
if ask.head and not chainPlace(ask.head) then return refused('node_not_found', 'head') end
if ask.call and redis.call('HEXISTS', CALLS, ask.call) == 1 then return state('closed', it.head) end
local call = rest + ask.replies * NODE
local marks = call + (ask.call and CALL or 0)
local counts = marks + ask.marks * MARK
local isReply = {}
for reply = rest, call - 1, NODE do
  local there = placeOf(ARGV[reply])
  if there and (there[1] == 0 or there[2] ~= ARGV[reply + 1]) then return refused('invalid_request', 'replies') end
  isReply[ARGV[reply]] = true
end
for mark = marks, counts - 1, MARK do
  if not isReply[ARGV[mark + 1]] and not chainPlace(ARGV[mark + 1]) then
    return refused('node_not_found', 'mark.head')
  end
end

-- Behind a deleted head a reply is deleted too (SPEC 2.6); behind one that is not, none is.
local deletedAt = ask.head and redis.call('HGET', DELETED, ask.head)
for reply = rest, call - 1, NODE do
  if not deletedAt then restore({ARGV[reply]}) end
  if not placeOf(ARGV[reply]) then
    append(reply, behind(reply, placeOf(ARGV[reply + 1])))
    if deletedAt then redis.call('HSET', DELETED, ARGV[reply], deletedAt) end
  end
end
if ask.headTo and ARGV[rest + 1] == it.head then set('head', ask.headTo) end
if ask.call then
  storeCall(call, placeOf(ask.head)[1])
  for reply in pairs(isReply) do indexReply(ask.call, reply) end
  if ask.reduction then storeText(ask.reduction, ask.reductionBytes, ask.reductionText) end
end
for count = counts, #ARGV - 1, 2 do
  local id = ARGV[count]
  local stored = redis.call('HGET', COUNTS, id)
  local isOther = not stored or string.match(stored, ' (.*)$') ~= ask.tokenizer
  if isOther and redis.call('HEXISTS', PLACES, id) == 1 then
    redis.call('HSET', COUNTS, id, ARGV[count + 1] .. ' ' .. ask.tokenizer)
  end
end
for mark = marks, counts - 1, MARK do storeMark(mark, placeOf(ARGV[mark + 1])[1]) end
set('usedAt', ask.now)
save()
return state('closed', it.head)
`,
);

/** Values: the summary's node. Answers `committed`, also to what it committed before, or `stale` with the reason. */
export const commitSummary = script(
  CONVERSATION,
  CHAIN,
  DEEPEST,
  WRITES,
  String.raw`
if absent() then return absent() end
local id = ARGV[rest]
local there = placeOf(id)
if there and there[6] == ask.operation then return state('committed') end
local covered = tonumber(ask.covered)
local last = ask.lastCovered
local lease = ask.leaseHead and redis.call('HGET', LEASES, ask.leaseHead)
if ask.leaseHead and string.match(lease or '', '^%d+') ~= ask.fence then return {'stale', 'the lease was lost'} end
if it.deletedAt then return {'stale', 'the conversation was deleted'} end
if not ask.isStart then return {'stale', 'the coverage is not the start of the spine'} end
if not stands(placeOf(last), covered) or isDeleted(last) then return {'stale', 'a covered node is gone'} end
local head = link(length)
if not stands(placeOf(head), length) or isDeleted(head) then return {'stale', 'the head is gone'} end
if (activeOn(length, link) or '') ~= ask.expectedActive then return {'stale', 'another summary became active'} end
if ask.headMustDescend then
  -- Back from HEAD until the walk meets the frozen spine, which HEAD has seldom left by far.
  local at = it.head
  local place = at ~= ROOT and placeOf(at) or nil
  while place and (place[1] > length or link(place[1]) ~= at) and place[1] > covered do
    at = place[2]
    place = at ~= ROOT and placeOf(at) or nil
  end
  if not place or place[1] < covered or link(place[1]) ~= at then return {'stale', 'HEAD left the segment'} end
end
if there then return {'stale', 'the summary was written before'} end

local place = append(rest, {0, ROOT, false, covered, last, ask.operation})
indexSummary(id, place)
set('active', id)
save()
return state('committed')
`,
);

export const moveHead = script(
  CONVERSATION,
  WRITES,
  String.raw`
if absent() then return absent() end
if not chainPlace(ask.to) or isDeleted(ask.to) then return refused('node_not_found', 'to') end
if it.operation == ask.operation then return {'moved'} end
if ask.expected and ask.expected ~= it.head then return refused('head_moved', 'expected') end
set('head', ask.to)
set('operation', ask.operation)
save()
return {'moved'}
`,
);

/** Values: the mark. */
export const setMark = script(
  CONVERSATION,
  WRITES,
  String.raw`
if absent() then return absent() end
local place = chainPlace(ARGV[rest + 1])
if not place then return refused('node_not_found', 'mark.head') end
storeMark(rest, place[1])
save()
return {'set'}
`,
);

/** A lease is `<fence> <end> <operation>` by its head; one that ran out stays until another takes its place (SPEC 5.11). */
export const acquireLease = script(
  CONVERSATION,
  CHAIN,
  WRITES,
  String.raw`
if absent() then return absent() end
local replaced = {}
local leases = redis.call('HGETALL', LEASES)
for at = 1, #leases, 2 do
  local place = placeOf(leases[at])
  local isHere = leases[at] == link(length) or (place and place[1] <= length and link(place[1]) == leases[at])
  if isHere then
    local fence, endsAt, operation = string.match(leases[at + 1], '^(%d+) (%d+) (.*)$')
    if operation == ask.operation then return {'given', fence} end
    if tonumber(endsAt) > tonumber(ask.now) then return {'taken'} end
    replaced[#replaced + 1] = leases[at]
  end
end
if #replaced > 0 then redis.call('HDEL', LEASES, unpack(replaced)) end
add('fence', 1)
redis.call('HSET', LEASES, link(length), it.fence .. ' ' .. ask.endsAt .. ' ' .. ask.operation)
save()
return {'given', it.fence}
`,
);

/** Renews a lease, or ends it where no `endsAt` is given. */
export const changeLease = script(
  CONVERSATION,
  WRITES,
  String.raw`
if not isReadable then return {'lost'} end
local fence, operation = string.match(redis.call('HGET', LEASES, ask.head) or '', '^(%d+) %d+ (.*)$')
if fence ~= ask.fence then return {'lost'} end
if ask.endsAt then
  redis.call('HSET', LEASES, ask.head, fence .. ' ' .. ask.endsAt .. ' ' .. operation)
else
  redis.call('HDEL', LEASES, ask.head)
end
save()
return {'held'}
`,
);
