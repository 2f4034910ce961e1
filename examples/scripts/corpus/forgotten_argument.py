def price(amount, tax_rate):
    return round(amount * (1 + tax_rate), 2)

tax_rate = 0.25
for amount in (10, 20):
    print(price(amount))
