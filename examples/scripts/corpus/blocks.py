def classify(n):
    if n < 0:
        return "negative"
    if n == 0:
        return "zero"
    return "positive"

for n in (-2, 0, 7):
  label = classify(n)
    print(n, label)
