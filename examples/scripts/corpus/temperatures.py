readings = [("oslo", 3.5), ("rome", 18.25), ("oslo", 5.0), ("rome", 20.0)]
by_city = {}
for city, degrees in readings:
    by_city.setdefault(city, []).append(degrees)
averages = {city: sum(values) / len(values) for city, values in by_city.items()}
for city in sorted(avergaes):
    print(f"{city:>6}: {averages[city]:.2f}")
