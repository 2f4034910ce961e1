count = 7
label = "items: " + count + "!"
print(label)
