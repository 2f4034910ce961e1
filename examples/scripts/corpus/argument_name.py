def area(width, height=1, unit="m"):
    return f"{width * height} {unit}2"

print(area(3, hieght=4))
print(area(2, height=5, units="cm"))
