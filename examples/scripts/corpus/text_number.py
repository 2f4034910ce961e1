rows = ["1,2", "3,4"]
total = 0
for row in rows:
    left, right = row.split(",")
    total += left * right
print(total)
