sides = [(3, 4), (5, 12), (8, 15)]
for a, b in sides:
    print(a, b, math.sqrt(a * a + b * b))
