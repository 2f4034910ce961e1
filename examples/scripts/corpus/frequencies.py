text = "the quick brown fox jumps over the lazy dog"
counts = Counter(text.replace(" ", ""))
for char, count in counts.most_common(3):
    print(char, count)
