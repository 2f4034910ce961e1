class Counter:
    def __init__(self):
        self.count = 0

    def step(by):
        self.count += by
        return self.count

counter = Counter()
print(counter.step(2), counter.step(3))
