"""Print a stock report for a small shop."""

LOW_STOCK = 10

inventory = [
    {"name": "Notebook", "quantity": 42, "unit_price": 2.50},
    {"name": "Pencil", "quantity": 7, "unit_price": 0.80},
    {"name": "Backpack", "quantity": 3, "unit_price": 34.90},
    {"name": "Eraser", "quantity": 120, "unit_price": 0.35},
]


def stock_value(item):
    """Return the value of all pieces of an item."""
    return item["quantity"] * item["price"]


def print_report(items):
    total_value = 0.0
    low = []
    print(f"{'Item':<12}{'Qty':>5}{'Value':>10}")
    for item in items:
        value = stock_value(item)
        total_value += value
        print(f"{item['name']:<12}{item['quantity']:>5}{value:>10.2f}")
        if item["quantity"] < LOW_STOCK:
            low.append(item["name"])
    print("-" * 27)
    print(f"{'Total':<17}{totl_value:>10.2f}")
    print("Items to reorder: " + len(low))
    for name in sorted(low):
        print("  " + name)


print_report(inventory)
