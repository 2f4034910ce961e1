scores = {"ada": 3, "bob": 2}
best = 3
for name, score in scores.items():
    if score = best:
        print(name, "wins")
