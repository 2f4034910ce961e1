prices = [10, 20, 30]
discount = 0.1
print(sum(price * (1 + discount) for price in prices))
