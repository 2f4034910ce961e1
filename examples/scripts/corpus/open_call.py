values = [4, 8, 15, 16, 23, 42]
print("sum", sum(values))
print("mean", round(sum(values) / len(values), 2)
print("done")
