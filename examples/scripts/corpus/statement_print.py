items = ["a", "b"]
for index, item in enumerate(items):
    print index, item
print("end")
