-- Appends commits of one aggregate with consecutive versions, all or nothing, and notes them as unpublished.
-- KEYS[1]  stream: ZSET of commits by version
-- KEYS[2]  requests: SET of the request ids of these commits
-- then, with a note:          outbox: ZSET of identities by first unpublished version
-- then, if version 1 is among them: ids: ZSET of the bucket's aggregate ids; purged: HASH of tombstones by index member
-- ARGV[1]  the first commit's version
-- ARGV[2]  identity, to leave a note, or ''
-- ARGV[3]  index member ('' unless the first version is 1)
-- ARGV[4…] request id and bytes of each commit
-- Returns  ok          appended; the note, if one was asked for, is this caller's
--          noted       appended; an older version is unpublished
--          same        the very same commits are stored; same-ok if the note stands at the first of them
--          request     a request id among them is known
--          corrupt …   what is stored contradicts itself
--          purged      a tombstone keeps the id
--          aggregate   another tenant holds the id
--          version     the stream does not end at the version before
--          argument    the version is not a plain positive integer
-- or the error of a command; whatever it answers but ok and noted, nothing is changed.
local stream, requests = KEYS[1], KEYS[2]
local version, identity, member = ARGV[1], ARGV[2], ARGV[3]
if #version > 10 or not string.find(version, '^[1-9]%d*$') then return 'argument' end
local first = tonumber(version)
local last = #ARGV
local outbox, ids, purged
if identity ~= '' then
  outbox, ids, purged = KEYS[3], KEYS[4], KEYS[5]
else
  ids, purged = KEYS[3], KEYS[4]
end

-- What the index holds of this id, in any tenant: members are <id in hex>.<tenant>.
local function holders()
  local dot = string.find(member, '.', 1, true)
  return redis.pcall('ZRANGEBYLEX', ids, '[' .. string.sub(member, 1, dot),
    '(' .. string.sub(member, 1, dot - 1) .. '/', 'LIMIT', 0, 1)
end

local count = redis.pcall('ZCARD', stream)
if type(count) == 'table' then return count end

local function refusal()
  local same, known = true, false
  for i = 4, last, 2 do
    local score = redis.pcall('ZSCORE', stream, ARGV[i + 1])
    if not score or tonumber(score) ~= first + (i - 4) / 2 then same = false end
    if redis.pcall('SISMEMBER', requests, ARGV[i]) == 1 then known = true end
  end
  if same then
    if not outbox then return 'same' end
    local at = redis.pcall('ZSCORE', outbox, identity)
    if type(at) == 'table' then return at end
    if at and tonumber(at) == first then return 'same-ok' end
    return 'same'
  end
  if known then return 'request' end
  local at = redis.pcall('ZCOUNT', stream, count, count)
  local above = redis.pcall('ZCOUNT', stream, '(' .. count, '+inf')
  if above > 0 or count > 0 and at == 0 then
    local highest = redis.pcall('ZREVRANGE', stream, 0, 0, 'WITHSCORES')
    return 'corrupt ' .. count .. ' commits are stored and the highest version is ' .. highest[2]
  end
  if first == 1 then
    local held = holders()
    if held[1] == member and count == 0 then
      local tombstone = redis.pcall('HEXISTS', purged, member)
      if type(tombstone) == 'table' then return tombstone end
      return tombstone == 1 and 'purged' or 'corrupt the index holds the id and there are no commits'
    end
    if held[1] and held[1] ~= member then return 'aggregate' end
  end
  return 'version'
end

if count ~= first - 1 then return refusal() end
if first == 1 then
  local held = holders()
  if held.err then return held end
  if held[1] then return refusal() end
else
  local above = redis.pcall('ZCOUNT', stream, version, '+inf')
  if above ~= 0 then return refusal() end
end

-- From here on things are written: what fails takes back what was done before it.
local function undo(upto, failure)
  for i = 4, upto, 2 do
    redis.pcall('ZREM', stream, ARGV[i + 1])
    redis.pcall('SREM', requests, ARGV[i])
  end
  if first == 1 and upto == last - 1 then redis.pcall('ZREM', ids, member) end
  return failure
end

for i = 4, last, 2 do
  local added = redis.pcall('SADD', requests, ARGV[i])
  if added ~= 1 then
    undo(i - 2)
    return type(added) == 'table' and added or refusal()
  end
  added = redis.pcall('ZADD', stream, 'NX', i == 4 and version or first + (i - 4) / 2, ARGV[i + 1])
  if added ~= 1 then
    redis.pcall('SREM', requests, ARGV[i])
    undo(i - 2)
    return type(added) == 'table' and added or 'corrupt the same bytes are stored under another version'
  end
end
if first == 1 then
  local added = redis.pcall('ZADD', ids, 0, member)
  if type(added) == 'table' then return undo(last - 1, added) end
end
if outbox then
  local added = redis.pcall('ZADD', outbox, 'NX', version, identity)
  if type(added) == 'table' then return undo(last - 1, added) end
  if added == 0 then return 'noted' end
end
return 'ok'
