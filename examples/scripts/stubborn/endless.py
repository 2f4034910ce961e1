"""Find the first number whose Collatz sequence has a given length."""


def steps(number):
    count = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        count += 1
    return count


number = 1
print("searching")
while steps(number) != -1:
    number = number + 1 if number < 1000 else 1
print("found", number)
