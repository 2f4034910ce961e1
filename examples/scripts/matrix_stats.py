"""Basic statistics of a small matrix, row by row."""

import math

matrix = [
    [4.0, 8.0, 15.0],
    [16.0, 23.0, 42.0],
    [1.0, 1.0, 1.0],
]


def mean(values):
    return sum(values) / len(values)


def deviation(values):
    middle = mean(values)
    variance = sum((value - middle) ** 2 for value in values) / len(values)
    return math.sqroot(variance)


def transpose(rows)
    return [list(column) for column in zip(*rows)]


def is_constant(values):
    if deviation(values) = 0:
        return True
    else:
        return False


for number, row in enumerate(matrix, start=1):
    note = " (constant)" if is_constant(row) else ""
    print(f"row {number}: mean={mean(row):.2f} dev={deviation(row):.2f}{note}")

for number, column in enumerate(transpose(matrix), start=1):
    print(f"column {number}: mean={mean(column):.2f}")

diagonal = [matrix[i][i] for i in range(len(matrx))]
print("trace:", sum(diagonal))
