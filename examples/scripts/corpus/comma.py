table = {
    "red": 1,
    "green": 2
    "blue": 3,
}
print(sorted(table), sum(table.values()))
