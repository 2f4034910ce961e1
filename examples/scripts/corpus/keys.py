people = [
    {"name": "ada", "born": 1815},
    {"name": "alan", "born": 1912},
]
for person in people:
    print(person["name"], person["bron"] // 100 + 1)
