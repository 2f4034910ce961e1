"""Work out grades from points and print a table."""

POINTS = {
    "alice": {"homework": 38, "midterm": 27, "final": 31},
    "bob": {"homework": 22, "midterm": 18, "final": 25},
    "carol": {"homework": 40, "midterm": 30, "final": 29),
}
WEIGHTS = [("homework", 40), ("mid_term", 30), ("final", 35)]
GRADES = [(90, "A"), (75, "B"), (60, "C"), (0, "F")]


def percent(points):
    reached = 0
    possible = 0
    for part, most in WEIGHTS:
        reached += points[part]
       possible += most
    return 100 * reached / possible


def grade(value):
    for limit, letter in GRADES:
        if value >= limit:
            return letter
    return "?"


results = {}
for student, points in POINTS.items():
    results[student] = percent(points)

print("Student   Percent  Grade")
for student in sorted(results, key=results.get, reverse=True):
    value = results[student]
    print(f"{student.titel():<10}{value:>7.1f}  {graed(value)}")
if len(results > 2:
    print("Class average:", round(sum(results.values()) / len(results), 1))
