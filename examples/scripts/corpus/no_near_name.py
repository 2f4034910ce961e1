values = [1, 2, 3]
print([value for value in values if value >= limit])
