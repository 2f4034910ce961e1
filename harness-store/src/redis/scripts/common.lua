-- What every script begins with. KEYS[1] is the hash of the store. All other keys are made from its name,
-- whose tag puts them into one hash slot. Numbers that are counted with stay below 2^53.
local call = redis.call
local prefix = string.sub(KEYS[1], 1, -6)
local store = call('HMGET', KEYS[1], 'format', 'made')
-- The last argument is the random name of the store that was opened: another one was made since.
if store[1] and store[2] ~= ARGV[#ARGV] then store[1] = false end
if store[1] ~= '1' then return {'format', store[1]} end
local id = ARGV[1]
local function key(kind) return prefix .. kind .. ':' .. id end
local session = key('session')
local function whole(number) return string.format('%.0f', number) end
-- Microseconds by the clock of the server.
local function now()
    local time = call('TIME')
    return time[1] * 1000000 + time[2]
end
