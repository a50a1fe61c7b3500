-- Writes a dead letter of an entry that the consumer owns, or one for each function that failed with it, and acknowledges
-- the entry; never one without the other.
-- KEYS[1]  stream
-- KEYS[2]  failures: HASH by entry of "<count> <first ms> …"
-- KEYS[3]  letters: stream of dead letters
-- ARGV[1]  group
-- ARGV[2]  consumer
-- ARGV[3]  id
-- ARGV[4]  what stands before an entry's id in failures: '' unless the stream is a retry stream
-- ARGV[5]  reason
-- ARGV[6]  error
-- ARGV[7]  attempts
-- ARGV[8]  aggregate, or ''
-- ARGV[9]  how often it was replayed
-- ARGV[10] its id in the topic
-- ARGV[11] 'given' if its own fields follow, '' if they are to be copied from the stream
-- ARGV[12] how many functions failed; then of each: context, processor, name, reason, error
-- ARGV[…]  its own fields, as they stand in a letter
-- Returns  'buried', also where an earlier call did it; 'gone' if the stream holds it no more; 'not owner'
local stream, failures, letters, group, consumer, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3]
local owned = redis.pcall('XPENDING', stream, group, id, id, 1, consumer)
if owned.err then return owned end
if not owned[1] then
  -- The reply to this very call may have been lost. One at a time, since letters may be large.
  local last = '+'
  for _ = 1, 100 do
    local found = redis.pcall('XREVRANGE', letters, last, '-', 'COUNT', 1)
    if found.err then return found end
    if not found[1] then break end
    local f = found[1][2]
    if f[2] == stream and f[4] == id and f[6] == group and f[8] == consumer then return 'buried' end
    last = '(' .. found[1][1]
  end
  return 'not owner'
end

local replays, origin, own = ARGV[9], ARGV[10], {}
if ARGV[11] == 'given' then
  for i = 13 + 5 * ARGV[12], #ARGV do own[#own + 1] = ARGV[i] end
else
  local record = redis.pcall('XRANGE', stream, id, id)
  if record.err then return record end
  if not record[1] then return 'gone' end
  local f = record[1][2]
  if ARGV[4] ~= '' then -- what was replayed is written as in a letter
    for i = 1, #f, 2 do
      if f[i] == 'replays' then
        replays = f[i + 1]
      elseif f[i] == 'origin' then
        origin = f[i + 1]
      elseif f[i] == 'packed' or string.sub(f[i], 1, 2) == 'f:' then
        own[#own + 1] = f[i]
        own[#own + 1] = f[i + 1]
      end
    end
  elseif #f > 2000 then -- more than unpack can take
    for i = 1, #f do f[i] = #f[i] .. ':' .. f[i] end
    own = {'packed', table.concat(f)}
  else
    for i = 1, #f, 2 do
      own[i] = 'f:' .. f[i]
      own[i + 1] = f[i + 1]
    end
  end
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.pcall('HGET', failures, ARGV[4] .. id)
if type(known) == 'table' then return known end
local first = string.match(known or '', '^%d+ (%d+) ') or now
local function write(reason, text, more)
  for i = 1, #own do more[#more + 1] = own[i] end
  return redis.pcall('XADD', letters, '*', 'stream', stream, 'entry', id, 'group', group, 'consumer', consumer,
    'reason', reason, 'error', text, 'first', first, 'last', now, 'attempts', ARGV[7], 'aggregate', ARGV[8],
    'replays', replays, 'origin', origin, unpack(more))
end
local functions = tonumber(ARGV[12])
if functions == 0 then
  local added = write(ARGV[5], ARGV[6], {})
  if type(added) == 'table' then return added end
end
for i = 13, 12 + 5 * functions, 5 do
  local added = write(ARGV[i + 3], ARGV[i + 4], {'context', ARGV[i], 'processor', ARGV[i + 1], 'function', ARGV[i + 2]})
  if type(added) == 'table' then return added end -- the first only: what the first could do the others can
end
redis.call('XACK', stream, group, id)
redis.call('HDEL', failures, ARGV[4] .. id)
return 'buried'
