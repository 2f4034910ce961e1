-- Each message has six arguments: its key, its digest, whether it refers to an interrupt, to which,
-- whether it reports its expiry, and what is stored of it.
local count = tonumber(ARGV[2])
if call('HEXISTS', session, 'head') == 0 then return {'gone'} end
local after = damage()
if after then return {'damaged', whole(after)} end
local new, own = {}, {}
for number = 0, count - 1 do
    local at = 3 + number * 6
    local name, digest = ARGV[at], ARGV[at + 1]
    local stored = call('HGET', key('keys'), name)
    if stored then
        local seq, first = string.match(stored, '^(%d+):(.*)$')
        if first ~= digest then
            return {'taken', name, call('LINDEX', key('inbox'), tonumber(seq) - 1)}
        end
    elseif own[name] then
        if ARGV[own[name] + 1] ~= digest then return {'taken', name, ARGV[own[name] + 5]} end
    else
        own[name] = at
        new[#new + 1] = at
    end
end
local time = math.floor(now() / 1000)
for _, at in ipairs(new) do
    if ARGV[at + 2] == '1' then
        local times = call('HGET', key('open'), ARGV[at + 3])
        local expires = times and string.match(times, ':(%d+)$')
        local expired = expires and tonumber(expires) <= time or false
        if not times or expired ~= (ARGV[at + 4] == '1') then return {'late', ARGV[at]} end
    end
end
local last = call('LLEN', key('inbox'))
for _, at in ipairs(new) do
    last = call('RPUSH', key('inbox'), ARGV[at + 5])
    call('HSET', key('keys'), ARGV[at], last .. ':' .. ARGV[at + 1])
end
if #new > 0 then
    call('HSET', session, 'inbox', last)
    place_due()
else
    -- What was sent before may be on the way to the disk of a replica.
    call('HINCRBY', KEYS[1], 'flushes', 1)
end
return {'accepted', last}
