# %% load
rows = [
    {"region": "north", "amount": 120},
    {"region": "south", "amount": 80},
    {"region": "north", "amount": -5},
]

# %% clean
rows = [row for row in rows if row["amount"] > 0]

# %% tag
for row in rows:
    row["large"] = row["amount"] >= 100

# %% totals
totals = {}
for row in rows:
    totals[row["region"]] = totals.get(row["region"], 0) + row["amount"]

# %% title
title = "Sales"

# %% report
print(title, totals, sum(row["large"] for row in rows), "large")
