#!/usr/bin/env python3
# Draws a horizontal histogram of dice rolls as text.

ROLLS = [3, 5, 1, 6, 3, 2, 3, 5, 5, 4, 3, 6, 1, 5, 5, 2]
WIDTH = 20


def histogram(values):
    counts = Counter(values)
    most = max(counts.values())
    lines = []
    for face in range(1, 7):
        count = counts[face]
        bar = "#" * round(count * WIDTH / most)
        lines.append(f"{face} | {bar} {count}")
    return lines


def main():
    print("Rolls:", len(ROLLS))
    for line in histogram(ROLLS):
        print(line)
      average = sum(ROLLS) / len(ROLLS)
    print(f"Average: {average:.3f}")
    print "Median:", sorted(ROLLS)[len(ROLLS) // 2]


if __name__ == "__main__":
    main()
