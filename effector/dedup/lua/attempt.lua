-- KEYS: the record. ARGV: token, now, call.
local key, mine, now, call = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]
local owner, token, held_until, attempts, last, status, expires_at = unpack(redis.call('HMGET', key, 'o', 't', 'u', 'a', 'c', 's', 'e'))
if not token then
    return {'none'}
end
if status then
    if tonumber(expires_at) > now then
        return {'done', status, redis.call('HGET', key, 'r')}
    end
    return {'none'}
end
if last == call then
    return {'attempted', attempts}
end
if token ~= mine or tonumber(held_until) <= now then
    return {'held', owner, token, held_until}
end
redis.call('HSET', key, 'c', call)
return {'attempted', redis.call('HINCRBY', key, 'a', 1)}
