-- KEYS: the record. ARGV: token, now, status, result, expires at, ms from now until the server may remove it.
local key, mine, now = KEYS[1], ARGV[1], tonumber(ARGV[2])
local owner, token, held_until, status, expires_at = unpack(redis.call('HMGET', key, 'o', 't', 'u', 's', 'e'))
if not token then
    return {'none'}
end
if status then
    if tonumber(expires_at) <= now then
        return {'none'}
    end
    local result = redis.call('HGET', key, 'r')
    if token == mine and status == ARGV[3] and result == ARGV[4] then
        return {'completed'}
    end
    return {'done', status, result}
end
if token ~= mine then
    return {'held', owner, token, held_until}
end
redis.call('HSET', key, 's', ARGV[3], 'r', ARGV[4], 'e', ARGV[5])
redis.call('PEXPIRE', key, ARGV[6])
return {'completed'}
