-- Appends commits of one aggregate with consecutive versions, all or nothing, and notes them as unpublished.
-- KEYS[1]  stream: ZSET of commits by version
-- KEYS[2]  requests: SET of the request ids of these commits
-- then, with a note:          outbox: ZSET of identities by first unpublished version
-- then, if version 1 is among them: ids: ZSET of the bucket's aggregate ids; purged: HASH of tombstones by index member
-- then, with a note and one commit, to publish it as well: event topic: STREAM; and state topic: STREAM
-- ARGV[1]  the first commit's version
-- ARGV[2]  identity, to leave a note, or ''
-- ARGV[3]  index member ('' unless the first version is 1)
-- ARGV[4…] request id and bytes of each commit; then, for a state topic, the bytes of the state event
-- Returns  ok          appended; the note, if one was asked for, is this caller's
--          published   appended and published; there is no note
--          noted       appended; an older version is unpublished
--          same        the very same commits are stored; same-ok if the note stands at the first of them
--          request     a request id among them is known
--          corrupt …   what is stored contradicts itself
--          purged      a tombstone keeps the id
--          aggregate   another tenant holds the id
--          version     the stream does not end at the version before
--          argument    the version is not a plain positive integer
-- or the error of a command; whatever it answers but ok, published and noted, nothing is changed.
-- The way of the common case has no closure and no table of its own: they cost as much as a command.
local version, identity, member = ARGV[1], ARGV[2], ARGV[3]
if #version > 10 or not string.find(version, '^[1-9]%d*$') then return 'argument' end
local call = redis.pcall
local first, last = tonumber(version), #ARGV
local stream, requests = KEYS[1], KEYS[2]
local outbox, ids, purged
if identity ~= '' then
  outbox, ids, purged = KEYS[3], KEYS[4], KEYS[5]
else
  ids, purged = KEYS[3], KEYS[4]
end
local topics = (outbox and 3 or 2) + (first == 1 and 2 or 0) -- how many keys stand before them
local event, state = KEYS[topics + 1], KEYS[topics + 2]
if event then last = 5 end

local count = call('ZCARD', stream)
if type(count) == 'table' then return count end
local fits, held = count == first - 1, nil
if first == 1 then
  -- Members of the index are <id in hex>.<tenant>: is the id there, in any tenant?
  local dot = string.find(member, '.', 1, true)
  held = call('ZRANGEBYLEX', ids, '[' .. string.sub(member, 1, dot), '(' .. string.sub(member, 1, dot - 1) .. '/',
    'LIMIT', 0, 1)
  if held.err then return held end
  fits = fits and not held[1]
elseif fits then
  fits = call('ZCOUNT', stream, version, '+inf') == 0
end

if fits then
  local failure
  local i = 4 -- the commits before this one are written
  while i < last and not failure do
    local added = call('SADD', requests, ARGV[i])
    if added == 1 then
      added = call('ZADD', stream, 'NX', i == 4 and version or first + (i - 4) / 2, ARGV[i + 1])
      i = i + 2
      if added == 0 then added = 'corrupt the same bytes are stored under another version' end
    elseif added == 0 then
      added = 'request'
    end
    if added ~= 1 then failure = added end
  end
  if not failure and first == 1 then
    local added = call('ZADD', ids, 0, member)
    if type(added) == 'table' then failure = added end
  end
  if not failure and event then
    -- Where a note stands, an older version is unpublished. What cannot be published, or
    -- not with its state, gets a note: its type is right, and memory was there so far.
    local at = call('ZSCORE', outbox, identity)
    if type(at) == 'table' then
      failure = at
    elseif not at and type(call('XADD', event, '*', 'msg', ARGV[5])) == 'string'
      and (not state or type(call('XADD', state, '*', 'msg', ARGV[6])) == 'string') then
      return 'published'
    end
  end
  if not failure and outbox then
    local added = call('ZADD', outbox, 'NX', version, identity)
    if added == 0 then return 'noted' end
    if added ~= 1 then failure = added end
  end
  if not failure then return 'ok' end
  -- A script is not rolled back: take out what was written. Bytes that stand under
  -- another version were not.
  for j = 4, i - 2, 2 do
    call('SREM', requests, ARGV[j])
    call('ZREMRANGEBYSCORE', stream, first + (j - 4) / 2, first + (j - 4) / 2)
  end
  if first == 1 then call('ZREM', ids, member) end
  return failure
end

local same, known = true, false
for i = 4, last, 2 do
  local score = call('ZSCORE', stream, ARGV[i + 1])
  if not score or tonumber(score) ~= first + (i - 4) / 2 then same = false end
  if call('SISMEMBER', requests, ARGV[i]) == 1 then known = true end
end
if same then
  local at = outbox and call('ZSCORE', outbox, identity)
  if type(at) == 'table' then return at end
  return at and tonumber(at) == first and 'same-ok' or 'same'
end
if known then return 'request' end
if call('ZCOUNT', stream, '(' .. count, '+inf') > 0 or count > 0 and call('ZCOUNT', stream, count, count) == 0 then
  local highest = call('ZREVRANGE', stream, 0, 0, 'WITHSCORES')
  return 'corrupt ' .. count .. ' commits are stored and the highest version is ' .. highest[2]
end
if first == 1 and held[1] == member and count == 0 then
  local tombstone = call('HEXISTS', purged, member)
  if type(tombstone) == 'table' then return tombstone end
  return tombstone == 1 and 'purged' or 'corrupt the index holds the id and there are no commits'
end
if first == 1 and held[1] and held[1] ~= member then return 'aggregate' end
return 'version'
