greeting = "hello"
name = "world
print(greeting + ", " + name)
print("length:", len(greeting))
