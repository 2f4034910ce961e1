"""Count the words of a text and print the most frequent."""

import strng

TEXT = """The quick brown fox jumps over the lazy dog. The dog doesn't care,
but the fox does: the quick fox is quick and the dog is lazy."""

STOP_WORDS = {"the", "is", "and", "but"}


def words(text):
    table = str.maketran("", "", string.punctuation)
    return text.translate(table).lower().split()


def count(items):
    counts = {}
    for item in items:
	if item in STOP_WORDS:
            continue
	counts[item] = counts.get(item, 0) + 1
    return counts


def top(counts, limit=3):
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ranked[:limit]


found = words(TEXT)
counted = count(found)
print("Words:", len(found))
print("Different:", len(counted))
for word, number in top(counted, limt=4):
    print(f"{word:>8} {number} {'*' * number}")
longest = max(counted, key=len)
print("Longest word: " + longest + " with " + len(longest) + " letters")
