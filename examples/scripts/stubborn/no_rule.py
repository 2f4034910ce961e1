"""Average speed of some trips. The data has a trip that took no time."""

TRIPS = [
    ("Berlin", 289.0, 3.1),
    ("Potsdam", 35.0, 0.7),
    ("Home", 0.0, 0.0),
]


def speed(distance, hours):
    return distance / hours


for name, distance, hours in TRIPS:
    print(f"{name}: {speed(distance, hours):.1f} km/h")
