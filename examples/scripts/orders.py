"""Orders with discounts, as dataclasses."""

from dataclasses import dataclass, field


@dataclass
class Line:
    product: str
    quantity: int
    price: float

    def total(self) -> float:
        return self.quantity * self.price


@dataclass
class Order:
    customer: str
    lines: List[Line] = field(default_factory=list)
    discount: float = 0.0

    def add(self, line: Line) -> None:
        self.lines.push(line)

    def total(self) -> float:
        full = sum(line.total() for line in self.lines)
        return full * (1 - self.discount)

    def summary() -> str:
        return f"{self.customer}: {len(self.lines)} lines, {self.total():.2f} EUR"


def build_orders():
    first = Order(customer="Ada", discont=0.1)
    first.add(Line("keyboard", quantity=1, price=79.0))
    first.add(Line("cable", qty=3, price=5.5))
    second = Order("Grace")
    second.add(Line("monitor", 2, 189.99))
    return [first, second]


orders = build_orders()
for order in orders:
    print(order.summary())
best = max(orders, key=lambda order: order.total())
print("Best customer:", best.customer)
