import { CONVERSATION, WRITES } from './redis-conversation-lua.js';
import { script } from './redis-script.js';

/**
 * A node and every node behind it, in the order written: a pass over the whole conversation. These scripts run because the
 * operator said so, never in a turn.
 */
const BRANCH = String.raw`
local function branchOf(from)
  local ids, isIn = {from}, {[from] = true}
  for _, id in ipairs(redis.call('ZRANGE', ORDER, 0, -1)) do
    local place = not isIn[id] and placeOf(id)
    if place and isIn[place[2]] then
      isIn[id] = true
      ids[#ids + 1] = id
    end
  end
  return ids, isIn
end

local function answer()
  return state('done', tonumber(it.operationNodes), it.head)
end

-- An operation that is sent twice is answered twice and done once.
local function finish(nodes)
  set('operation', ask.operation)
  set('operationNodes', nodes)
  save()
  return answer()
end
`;

/** With `erase` nothing of the branch is kept, nor what was derived from it (SPEC 2.6). Answers the ids that went, too. */
export const removeBranch = script(
  CONVERSATION,
  WRITES,
  BRANCH,
  String.raw`
if absent() then return absent() end
if it.operation == ask.operation then return answer() end
local place = chainPlace(ask.from)
if not place or (not ask.erase and isDeleted(ask.from)) then return refused('node_not_found', 'from') end
if ask.expected and ask.expected ~= it.head then return refused('head_moved', 'expected') end
local ids, isIn = branchOf(ask.from)
if isIn[it.head] then set('head', place[2]) end
add('revision', 1)
if not ask.erase then
  local buried = 0
  for _, id in ipairs(ids) do buried = buried + redis.call('HSETNX', DELETED, id, ask.now) end
  return finish(buried)
end

-- Coverage starts at the spine's first node: what covers an erased node ends in one.
local removed = {}
for _, id in ipairs(ids) do removed[#removed + 1] = id end
for _, entry in ipairs(entries('S')) do
  local last, summary = string.match(entry, '^S%d+ (%S+) %d+ (%S+)$')
  if isIn[last] then
    removed[#removed + 1] = summary
    redis.call('ZREM', INDEX, entry)
    add('summaries', -1)
    if it.active == summary then set('active', nil) end
  end
end
local gone, kept = {}, {}
for _, id in ipairs(redis.call('ZRANGE', CALL_ORDER, 0, -1)) do
  local about = cjson.decode(string.match(redis.call('HGET', CALLS, id), '^[^\n]*'))
  local list = isIn[about.head] and gone or kept
  for _, digest in ipairs(about.texts) do list[digest] = true end
  if isIn[about.head] then
    redis.call('HDEL', CALLS, id)
    redis.call('ZREM', CALL_ORDER, id)
    add('calls', -1)
    if about.model then unindex('M' .. about.model .. ' ' .. ten(placeOf(about.head)[1]) .. ' ' .. about.head .. ' ') end
  end
end
for digest in pairs(gone) do
  local text = not kept[digest] and redis.call('HGET', TEXTS, digest)
  if text then
    add('bytes', -tonumber(string.match(text, '^%d+')))
    redis.call('HDEL', TEXTS, digest)
    redis.call('ZREM', TEXT_ORDER, digest)
  end
end
for _, id in ipairs(removed) do
  local depth = ten(placeOf(id)[1])
  unindex('R' .. id .. ' ')
  for _, kind in ipairs({'latched', 'overflowed'}) do
    redis.call('HDEL', MARKS, kind .. ' ' .. id)
    unindex('K' .. kind .. ' ' .. depth .. ' ' .. id .. ' ')
  end
  add('nodes', -1)
  add('bytes', -tonumber(string.match(redis.call('HGET', NODES, id), '^%d+ (%d+)')))
  for _, hash in ipairs({NODES, PLACES, COUNTS, DELETED, LEASES}) do redis.call('HDEL', hash, id) end
  redis.call('ZREM', ORDER, id)
end
-- Whatever was made of the branch may be in it.
redis.call('UNLINK', CACHE)
local done = finish(#ids)
done[#done + 1] = ids
return done
`,
);

export const restoreBranch = script(
  CONVERSATION,
  WRITES,
  BRANCH,
  String.raw`
if absent() then return absent() end
if it.operation == ask.operation then return answer() end
local place = chainPlace(ask.node)
if not place then return refused('node_not_found', 'node') end
local ids = branchOf(ask.node)
while place and place[2] ~= ROOT do
  ids[#ids + 1] = place[2]
  place = placeOf(place[2])
end
return finish(restore(ids))
`,
);

/** Sets the tombstone of the whole conversation, or lifts it where no `now` is given. */
export const markDeleted = script(
  CONVERSATION,
  WRITES,
  String.raw`
if absent() then return absent() end
set('deletedAt', ask.now and (it.deletedAt or ask.now) or nil)
save()
return state('done')
`,
);

export const eraseConversation = script(
  CONVERSATION,
  String.raw`
if not isReadable then return {'kept'} end
if ask.unusedSince and tonumber(it.usedAt) >= tonumber(ask.unusedSince) then return {'kept'} end
redis.call('UNLINK', unpack(KEYS))
return {'erased'}
`,
);

/**
 * Takes over one page. Values: for each record its type, how many values follow, and those; a node's are its own, its seq, its
 * tombstone and, of a summary, what it covers: count, first, last and the one before. All is checked before any is written.
 */
export const importPage = script(
  CONVERSATION,
  WRITES,
  String.raw`
if it.operation == ask.operation then return state('imported') end
if it.tenant and (it.tenant ~= ask.tenant or not it.importing) then
  return refused('conversation_exists', 'conversation')
end
if not ask.first and not it.tenant then return refused('conversation_not_found', 'conversation') end

local fresh, calls = {}, {}
local function placed(id)
  return fresh[id] or (not ask.first and placeOf(id)) or nil
end
local function isChain(id)
  local place = placed(id)
  return place and place[1] > 0
end
local function eachRecord(readers)
  local at = rest
  while at < #ARGV do
    local fault = readers[ARGV[at]](at + 2)
    if fault then return fault end
    at = at + 2 + ARGV[at + 1]
  end
end

local lastSeq = ask.first and 0 or tonumber(it.seq or '0')
local fault = eachRecord({
  text = function() end,
  node = function(at)
    local id, predecessor = ARGV[at], ARGV[at + 1]
    local seq, covers = tonumber(ARGV[at + NODE]), tonumber(ARGV[at + NODE + 2])
    if seq <= lastSeq or placed(id) then return 'records' end
    if predecessor ~= ROOT and not isChain(predecessor) then return 'records' end
    lastSeq = seq
    if covers == 0 then
      fresh[id] = behind(at, placed(predecessor))
      return nil
    end
    local first, last, before = ARGV[at + NODE + 3], ARGV[at + NODE + 4], ARGV[at + NODE + 5]
    local firstPlace, lastPlace = placed(first), placed(last)
    if not firstPlace or firstPlace[1] ~= 1 or not lastPlace or lastPlace[1] ~= covers or lastPlace[2] ~= before then
      return 'records'
    end
    fresh[id] = {0, ROOT, false, covers, last, ''}
  end,
  call = function(at)
    if not isChain(ARGV[at + 1]) then return 'records' end
    if calls[ARGV[at]] or (not ask.first and redis.call('HEXISTS', CALLS, ARGV[at]) == 1) then return 'records' end
    calls[ARGV[at]] = true
  end,
  mark = function(at)
    if not isChain(ARGV[at + 1]) then return 'records' end
  end,
})
if not fault and ask.last then
  if ask.head ~= ROOT and not isChain(ask.head) then fault = 'conversation.head' end
  local active = ask.active and placed(ask.active)
  if not fault and ask.active and not (active and active[1] == 0) then fault = 'conversation.activeSummary' end
end
if fault then return refused('invalid_request', fault) end

if ask.first then
  redis.call('UNLINK', unpack(KEYS))
  it = {}
  for _, name in ipairs({'tenant', 'fixed', 'createdAt', 'usedAt'}) do set(name, ask[name]) end
  set('head', ROOT)
  set('deletedAt', ask.now)
  set('importing', '1')
end
eachRecord({
  text = function(at) storeText(ARGV[at], ARGV[at + 1], ARGV[at + 2]) end,
  node = function(at)
    set('seq', ARGV[at + NODE] - 1)
    local place = append(at, fresh[ARGV[at]])
    if place[1] == 0 then indexSummary(ARGV[at], place) end
    if ARGV[at + NODE + 1] ~= '' then redis.call('HSET', DELETED, ARGV[at], ARGV[at + NODE + 1]) end
  end,
  call = function(at)
    storeCall(at, placeOf(ARGV[at + 1])[1])
    for reply = at + CALL, at + ARGV[at - 1] - 1 do indexReply(ARGV[at], ARGV[reply]) end
  end,
  mark = function(at) storeMark(at, placeOf(ARGV[at + 1])[1]) end,
})
if ask.last then
  set('fixed', ask.fixed)
  set('createdAt', ask.createdAt)
  set('usedAt', ask.usedAt)
  set('head', ask.head)
  set('active', ask.active)
  set('deletedAt', ask.deletedAt)
  set('importing', nil)
end
set('operation', ask.operation)
save()
return state('imported')
`,
);
