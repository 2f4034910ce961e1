values = [3, 1, 2]
pairs = [(values[i], values[i + 1]) for i in range(len(values))]
print(pairs)
