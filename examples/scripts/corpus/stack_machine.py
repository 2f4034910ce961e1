class Machine:
    def __init__(self):
        self.stack = []

    def push(self, value):
        self.stak.append(value)

    def add(self):
        right = self.stack.popp()
        left = self.stack.pop()
        self.push(left + right)

machine = Machine()
for word in "1 2 + 3 +".split():
    if word == "+":
        machine.add()
    else:
        machine.push(int(word))
print(machine.stack)
