-- Stores a snapshot unless the one that is stored is newer, and never over bytes whose
-- version it cannot read.
-- KEYS 1  string: the aggregate's snapshot, JSON or MessagePack
-- ARGV 1  the version of the new snapshot
-- ARGV 2  the new snapshot
-- Returns Ok; Ignored: a newer one is stored; Unreadable: what is stored shows no
-- version; WrongFormat: another codec wrote what is stored. Only Ok wrote anything.

-- A head as every current writer of JSON begins it. A backslash or a quote in any of
-- the texts breaks the match, so no text can pass itself off as the version.
local json_head = '^{"contextName":"[^"\\]*","aggregateName":"[^"\\]*","aggregateId":"[^"\\]*"'
  .. ',"tenantId":"[^"\\]*","ownerId":"[^"\\]*","spaceId":"[^"\\]*","version":(%d+),'
-- The first byte is one that neither JSON nor MessagePack can begin with.
local packed = '^\193HW'
local packed_head = '^\193HW.(%d%d%d%d%d%d%d%d%d%d)'

-- The version of JSON that another order, an older writer, an escape or a long text
-- keeps from showing it in its head; nil where there is none.
local function decoded_version()
  local parsed, value = pcall(cjson.decode, redis.call('GET', KEYS[1]))
  if not parsed or type(value) ~= 'table' then return nil end
  local kind = type(value.version)
  if kind ~= 'number' and kind ~= 'string' then return nil end
  local version = tonumber(value.version)
  if version ~= version then return nil end
  return version
end

local head = redis.pcall('GETRANGE', KEYS[1], 0, 4095)
if type(head) == 'table' then return head end

if head ~= '' or redis.call('EXISTS', KEYS[1]) == 1 then
  local stored
  local stored_packed = string.find(head, packed) ~= nil
  if stored_packed then
    stored = tonumber(string.match(head, packed_head))
  else
    stored = tonumber(string.match(head, json_head)) or decoded_version()
  end
  if not stored then return 'Unreadable' end
  if stored_packed ~= (string.find(ARGV[2], packed) ~= nil) then return 'WrongFormat' end
  if stored > tonumber(ARGV[1]) then return 'Ignored' end
end

local reply = redis.pcall('SET', KEYS[1], ARGV[2])
if reply.err then return reply end
return 'Ok'
