-- Moves a consumer's deadline on, by the server's clock.
-- KEYS[1]  leases: ZSET of consumers by deadline in ms
-- ARGV[1]  consumer
-- ARGV[2]  for how many ms
-- ARGV[3]  the deadline that the consumer last heard of, or '' if this is its first
-- Returns  {'ok' or 'late', the new deadline}: late if the deadline had passed, or was lost, so that peers may have
--          claimed. What the consumer has heard of counts, since the reply to a late renewal may itself be lost.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stood = redis.pcall('ZSCORE', KEYS[1], ARGV[1])
if type(stood) == 'table' then return stood end
local word = 'ok'
if ARGV[3] ~= '' and (not stood or tonumber(stood) <= now or tonumber(ARGV[3]) <= now) then word = 'late' end
local deadline = now + tonumber(ARGV[2])
local written = redis.pcall('ZADD', KEYS[1], deadline, ARGV[1])
if type(written) == 'table' then return written end
return {word, deadline}
