"""Collect the words of a text that repeats itself."""

words = ["alpha", "beta", "gamma"]
seen = []
for word in words:
    seen.append(word * 1_000_000)
    words.append(word)
print(len(seen))
