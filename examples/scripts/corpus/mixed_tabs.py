def scale(values, factor):
    result = []
    for value in values:
		result.append(value * factor)
    return result

print(scale([1, 2, 3], 10))
