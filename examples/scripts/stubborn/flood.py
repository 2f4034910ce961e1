"""Print a multiplication table, but the row is never finished."""


def rows(size):
    row = 1
    while row <= size:
        yield " ".join(f"{row * column:4}" for column in range(1, size + 1))
        row += 0


for line in rows(12):
    print(line)
