import math

class Circle:
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return math.pie * self.raduis ** 2

shapes = [Circle(1), Circle(2)]
shapes.push(Circle(0.5))
print(f"{sum(shape.area() for shape in shapes):.3f}")
