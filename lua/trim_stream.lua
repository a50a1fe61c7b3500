-- Removes the oldest entries of a stream: those over a limit that every group has acked, and by a lossy limit all.
-- KEYS[1]  the stream
-- ARGV[1]  age in ms above which entries go that every group has acked, or ''
-- ARGV[2]  length above which entries go that every group has acked, or ''
-- ARGV[3]  age in ms above which all entries go, or ''
-- ARGV[4]  length above which all entries go, or ''
-- Returns  done or more (the call has a limit: call again), how many went that every group had acked, how many went
--          that some group had not, how many of these were pending; then of each group: its name, how many are
--          pending, the first entry that it has not acked or '', how many it has not read or '' where that is not
--          known, and what it does to the limits: passes, holds (its entries are over them), loses (they went);
--          or the error of a command
local stream, call = KEYS[1], redis.pcall
local more = false

-- Parts of ids are compared as texts of digits, since they are wider than Lua's numbers; '' is above every id.
local function below(a, b)
  if a == '' or b == '' then return a ~= '' end
  local ams, aseq = string.match(a, '^(%d+)-(%d+)$')
  local bms, bseq = string.match(b, '^(%d+)-(%d+)$')
  if ams ~= bms then return #ams < #bms or #ams == #bms and ams < bms end
  return #aseq < #bseq or #aseq == #bseq and aseq < bseq
end
local function later(a, b) return below(a, b) and b or a end

local length = call('XLEN', stream)
if type(length) == 'table' then return length end
if call('EXISTS', stream) == 0 then return {'done', 0, 0, 0} end
local time = call('TIME')

-- The first id that an age lets stay.
local function young(age)
  if age == '' then return '0-0' end
  return string.format('%.0f-0', math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - age))
end

-- The first entry that a length lets stay. It is looked for in growing steps, a thousand entries or half a mebibyte at most; where that
-- is not enough it is one before it, and the second result is true.
local function newest(limit)
  if limit == '' or length <= tonumber(limit) then return '0-0', false end
  local left, bytes, step, from = length - limit + 1, 0, 2, '-'
  while true do
    local page = call('XRANGE', stream, from, '+', 'COUNT', math.min(left, step))
    local last = page[#page][1]
    left = left - #page
    if left == 0 then return last, false end
    for i = 1, #page do
      for j = 1, #page[i][2] do bytes = bytes + #page[i][2][j] end
    end
    if bytes > 262144 or step > 256 then return last, true end
    from, step = '(' .. last, step * 2
  end
end

-- Removes what is before an id; a large part by whole nodes and not all at once.
local function trim(id)
  local nodes = call('XTRIM', stream, 'MINID', '~', id, 'LIMIT', 1000)
  if type(nodes) == 'table' then return nodes end
  if nodes >= 500 then
    more = true
    return nodes
  end
  local rest = call('XTRIM', stream, 'MINID', '=', id)
  if type(rest) == 'table' then return rest end
  return nodes + rest
end

local groups = call('XINFO', 'GROUPS', stream)
if groups.err then return groups end
local acked = #groups > 0 and '' or '0-0' -- all entries before it are acked by every group
for i, fields in ipairs(groups) do
  local group = {first = '', lag = ''}
  for j = 1, #fields, 2 do
    if fields[j] == 'name' then group.name = fields[j + 1] end
    if fields[j] == 'last-delivered-id' then group.read = fields[j + 1] end
    if fields[j] == 'lag' and fields[j + 1] and fields[j + 1] > 0 then group.lag = fields[j + 1] end
  end
  local pending = call('XPENDING', stream, group.name)
  if pending.err then return pending end
  group.pending = pending[1]
  if pending[1] > 0 then group.first = pending[2] end
  local unread = call('XRANGE', stream, '(' .. group.read, '+', 'COUNT', 1)
  if unread.err then return unread end
  if not unread[1] then
    group.lag = 0 -- Redis does not always know
  elseif below(unread[1][1], group.first) then
    group.first = unread[1][1]
  end
  if below(group.first, acked) then acked = group.first end
  groups[i] = group
end

local lossy, lossy_cut = newest(ARGV[4])
lossy = later(young(ARGV[3]), lossy)
local wanted, cut = newest(ARGV[2])
wanted = later(later(young(ARGV[1]), wanted), lossy)
local held = below(acked, wanted)
local removed, lost, cleared = trim(held and acked or wanted), 0, 0
if type(removed) == 'table' then return removed end
local lossily = not more and below(acked, lossy)
if lossily then
  lost = trim(lossy)
  if type(lost) == 'table' then return lost end
end
more = more or cut and not held or lossy_cut and (lossily or not held)

local reply = {'', removed, lost, 0}
for _, group in ipairs(groups) do
  local does = below(group.first, wanted) and 'holds' or 'passes'
  if lossily and below(group.first, lossy) then
    does = 'loses'
    local gone = call('XPENDING', stream, group.name, '-', '(' .. lossy, 1000)
    if gone.err then return gone end
    for j = 1, #gone do gone[j] = gone[j][1] end
    if #gone > 0 then cleared = cleared + call('XACK', stream, group.name, unpack(gone)) end
    more = more or #gone == 1000
  end
  for _, value in ipairs({group.name, group.pending, group.first, group.lag, does}) do table.insert(reply, value) end
end
reply[1], reply[4] = more and 'more' or 'done', cleared
return reply
