-- KEYS: the record. ARGV: token.
local token, status = unpack(redis.call('HMGET', KEYS[1], 't', 's'))
if token ~= ARGV[1] or status then
    return 0
end
redis.call('HSET', KEYS[1], 'u', '0', 't', string.format('%.0f', tonumber(token) + 1))
return 1
