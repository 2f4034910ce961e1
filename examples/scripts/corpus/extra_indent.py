words = ["one", "two", "three"]
longest = max(words, key=len)
    print(longest)
print(len(longest))
