-- KEYS: the record. ARGV: owner, now, until, call.
-- Fields: o owner, t token, u until (0: handed back), a attempts, c last call, s status, e expires at, r result.
-- Moments and tokens are below 2^53, which is as far as numbers are exact here.
local key, owner, now, lease, call = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local token, held_until, attempts, last, status, expires_at = unpack(redis.call('HMGET', key, 't', 'u', 'a', 'c', 's', 'e'))
if token then
    if status then
        if tonumber(expires_at) > now then
            return {'done', status, redis.call('HGET', key, 'r')}
        end
        -- Expired: as if it had never been, but for its token. The server would still remove it in time.
        redis.call('HDEL', key, 's', 'e', 'r')
        redis.call('PERSIST', key)
        attempts = '0'
    elseif last == call then
        return {'claimed', token, attempts}
    elseif tonumber(held_until) > now then
        return {'busy', held_until, redis.call('HGET', key, 'o')}
    end
    token = string.format('%.0f', tonumber(token) + 1)
else
    token, attempts = ARGV[2], '0'
end
redis.call('HSET', key, 'o', owner, 't', token, 'u', lease, 'a', attempts, 'c', call)
return {'claimed', token, attempts}
