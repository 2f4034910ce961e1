local token, after, count = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local bytes, framed, sum = ARGV[5], ARGV[6], ARGV[7]
local at, flush, changes = ARGV[8], ARGV[9] == '1', ARGV[10]
local has_summary, agent, phase, summary, listed = ARGV[11] == '1', ARGV[12], ARGV[13], ARGV[14], ARGV[15]
local seen, due, expires = ARGV[16], ARGV[17], ARGV[18]
local place = 19
local function take()
    place = place + 1
    return ARGV[place - 1]
end
local snapshots, opened, closed = tonumber(take()), tonumber(take()), tonumber(take())

local found = call('HMGET', session, 'token', 'head', 'inbox', 'fence', 'agent', 'phase', 'open')
local head = found[2] and tonumber(found[2])
local first, last = whole(after + 1), whole(after + count)
local member = first .. ':' .. last .. ':' .. bytes .. ':' .. token .. ':' .. sum
local repeated
if count > 0 then
    repeated = head and after < head
        and call('ZRANGEBYSCORE', key('batches'), first, first)[1] == member
else
    repeated = call('HGET', key('bare'), token) == whole(after) .. ':' .. changes
end
local has_changes = count > 0 or has_summary or opened > 0 or closed > 0
local appends = not repeated and found[1] == token and (head or 0) == after and has_changes
    and (head or count > 0 and has_summary)
if not appends then
    -- A flush waits for the writes of its own connection.
    if flush and (repeated or found[1] == token) then call('HINCRBY', KEYS[1], 'flushes', 1) end
    return {'no', call('HGET', KEYS[1], 'fence'), found[4] and '1' or '0', found[1], found[2],
        found[3] or '0', repeated and '1' or '0'}
end

if count > 0 then
    call('HSET', key('log'), first, framed)
    call('ZADD', key('batches'), first, member)
    call('HSET', session, 'head', last, 'updated', at)
    call('HDEL', key('bare'), token)
else
    call('HSET', key('bare'), token, whole(after) .. ':' .. changes)
    call('HSET', session, 'updated', at)
end
for number = 1, snapshots do
    local seq = take()
    call('ZADD', key('snapshots'), seq, seq)
    call('HSET', session, 'snapshot', seq)
end
for number = 1, opened do
    local interrupt, times = take(), take()
    call('HSET', key('open'), interrupt, times)
    call('ZADD', key('ids'), 0, interrupt)
end
for number = 1, closed do
    local interrupt = take()
    call('HDEL', key('open'), interrupt)
    call('ZREM', key('ids'), interrupt)
end
local was_open, is_open = found[7] == '1', found[7] == '1'
if opened > 0 or closed > 0 then is_open = call('EXISTS', key('ids')) == 1 end
if not head then call('HSET', session, 'created', at, 'first', '1', 'listed', listed) end
if has_summary then
    call('HSET', session, 'summary', summary, 'agent', agent, 'phase', phase, 'seen', seen,
        'due', due)
    if found[5] and found[5] ~= agent then call('ZREM', prefix .. 'due:' .. found[5], id) end
    place_due()
    if phase == '4' and expires ~= '' then
        call('ZADD', prefix .. 'ended', whole(now() + tonumber(expires)), id)
    elseif head then
        call('ZREM', prefix .. 'ended', id)
    end
else
    agent, phase = found[5], found[6]
end
local moved = agent ~= found[5] or phase ~= found[6]
if moved and head then index('ZREM', 'all', found[5], found[6], listed) end
if moved then index('ZADD', 'all', agent, phase, listed) end
if was_open and (moved or not is_open) then index('ZREM', 'open', found[5], found[6], listed) end
if is_open and (moved or not was_open) then index('ZADD', 'open', agent, phase, listed) end
if was_open ~= is_open then call('HSET', session, 'open', is_open and '1' or '0') end
return {'done', call('HGET', KEYS[1], 'fence'), last, found[3] or '0'}
