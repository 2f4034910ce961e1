names = [
    "ada",
    "grace",
    "edsger",
for name in names:
    print(name.title())
