-- What Wow's append script does, in our own words, for the tests of living together and as the benchmarks' yardstick.
-- KEYS     stream, ids, requests
-- ARGV     request id, version, document, index member, prefix and upper bound of the id in the index
local version = tonumber(ARGV[2])
if redis.call('ZCARD', KEYS[1]) ~= version - 1 then return 'EventVersionConflict' end
if version == 1 and #redis.call('ZRANGEBYLEX', KEYS[2], '[' .. ARGV[5], '(' .. ARGV[6], 'LIMIT', 0, 1) > 0 then
  return 'DuplicateAggregateId'
end
if redis.call('SADD', KEYS[3], ARGV[1]) == 0 then return 'DuplicateRequestId' end
redis.call('ZADD', KEYS[1], version, ARGV[3])
if version == 1 then redis.call('ZADD', KEYS[2], 0, ARGV[4]) end
return 'Ok'
