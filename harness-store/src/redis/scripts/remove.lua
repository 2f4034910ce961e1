local token, below = ARGV[2], ARGV[3]
local found = call('HMGET', session, 'token', 'fence', 'first')
if not found[2] then return {'gone', call('HGET', KEYS[1], 'fence')} end
local answer = {'found', call('HGET', KEYS[1], 'fence'), found[1]}
if found[1] ~= token then return answer end
if below == '' then
    erase()
    return answer
end
-- Only below the last snapshot.
local snapshot = call('ZREVRANGEBYSCORE', key('snapshots'), '+inf', '-inf', 'LIMIT', 0, 1)[1]
local kept = snapshot and math.min(tonumber(below), tonumber(snapshot))
if not kept or kept <= tonumber(found[3]) then return answer end
local at = call('ZREVRANGEBYSCORE', key('batches'), whole(kept), '-inf', 'LIMIT', 0, 1)[1]
local first, last, bytes, writer, sum
if at then first, last, bytes, writer, sum = batch_of(at) end
local framed = first and call('HGET', key('log'), first)
if not framed or sum_of(first, last, writer, framed) ~= sum then
    return {'damaged', tonumber(first or found[3]) - 1}
end
local removed = call('ZRANGEBYSCORE', key('batches'), '-inf', '(' .. whole(kept))
if tonumber(first) < kept then
    -- A batch of which only a part is kept is written without the rest.
    local place = 1
    for seq = tonumber(first), kept - 1 do
        local size = math.floor(struct.unpack('<I4', framed, place) / 2)
        place, bytes = place + 4 + size, bytes - size
    end
    framed, first = string.sub(framed, place), whole(kept)
    local new = sum_of(first, last, writer, framed)
    call('HSET', key('log'), first, framed)
    call('ZADD', key('batches'), first, first .. ':' .. last .. ':' .. whole(bytes) .. ':' .. writer .. ':' .. new)
end
for _, member in ipairs(removed) do
    call('ZREM', key('batches'), member)
    call('HDEL', key('log'), (batch_of(member)))
end
call('ZREMRANGEBYSCORE', key('snapshots'), '-inf', '(' .. whole(kept))
call('HSET', session, 'first', whole(kept))
-- A batch after the first entry can still be sent again.
local bare = call('HGETALL', key('bare'))
for number = 1, #bare, 2 do
    if tonumber(string.match(bare[number + 1], '^%d+')) + 1 < kept then call('HDEL', key('bare'), bare[number]) end
end
return answer
