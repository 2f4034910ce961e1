totals = {"a": 10, "b": 0}
for name, total in totals.items():
    share = 100 / total
    print(name, share)
