-- KEYS: the record. ARGV: now.
local now = tonumber(ARGV[1])
local owner, held_until, attempts, status, expires_at = unpack(redis.call('HMGET', KEYS[1], 'o', 'u', 'a', 's', 'e'))
if not owner then
    return {'free', '0'}
end
if status then
    if tonumber(expires_at) > now then
        return {'done', status, redis.call('HGET', KEYS[1], 'r')}
    end
    return {'free', '0'}
end
if tonumber(held_until) > now then
    return {'busy', held_until, owner}
end
return {'free', attempts}
