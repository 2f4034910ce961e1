prices = {"apple": 3, "pear": 4}
total = 0
for name, price in prices.items():
total += price
print(total)
