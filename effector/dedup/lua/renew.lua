-- KEYS: the record. ARGV: token, until. Never shortens the lease.
local token, held_until, status = unpack(redis.call('HMGET', KEYS[1], 't', 'u', 's'))
if token ~= ARGV[1] or status then
    return 0
end
if tonumber(ARGV[2]) > tonumber(held_until) then
    redis.call('HSET', KEYS[1], 'u', ARGV[2])
end
return 1
