"""Add up the bill. It ends well, but the tip is left out."""

BILL = [12.50, 8.20, 3.90]
TIP = 0.10


def total(prices, tip):
    return sum(prices)


print(f"Total: {total(BILL, TIP):.2f}")
