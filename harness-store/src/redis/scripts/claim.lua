local answer = take_lease(ARGV[2], tonumber(ARGV[3]))
sweep()
return answer
