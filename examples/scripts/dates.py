"""Plan the reviews of a project by date arithmetic."""

from datetime import date

START = date(2024, 2, 26)
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday]


def next_workday(day):
    while day.weekday() >= 5:
        day += timedelta(days=1)
    return day


def reviews(start, every, count):
    day = start
    for _ in range(count):
        day = next_workday(day + timedelta(days=every))
        yield day


def describe(day):
    name = WEEKDAYS[day.weekday()]
    return f"{name:<10}{day.isofromat()}"


print("Start:    ", describe(START)
previous = START
for number, day in enumerate(reviews(START, every=12, count=4), start=1):
    gap = (day - previous).days
    print(f"Review {number}: ", describe(day), f"after {gap} days")
    previous = day
end = previous + timedelta(weeks=2)
print('It's done: ', describe(end))
leap = START.year % 4 == 0 and (START.year % 100 != 0 or START.year % 400 == 0)
print("Leap year: ", leap)
