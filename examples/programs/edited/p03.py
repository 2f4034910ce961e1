NAME = "plots and a report"
SRC = r'''
# %% imports
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
# %% style
plt.rcParams["figure.figsize"] = (4, 3)
plt.rcParams["axes.grid"] = True
# %% data
rng = np.random.default_rng(5)
frame = pd.DataFrame({
    "day": np.arange(120),
    "site": np.tile(["a", "b", "c"], 40),
    "load": rng.gamma(2.0, 10.0, 120).round(2),
})
# %% smooth
frame["mean"] = frame.groupby("site")["load"].transform(lambda s: s.rolling(5, min_periods=1).mean())
# %% limits
low, high = frame["load"].quantile([0.1, 0.9])
# %% lines
fig, ax = plt.subplots()
for site, part in frame.groupby("site"):
    ax.plot(part["day"], part["mean"], label=site)
ax.axhline(high, color="k")
ax.legend()
fig.savefig("lines.png", dpi=60)
plt.close(fig)
# %% bars
fig, ax = plt.subplots()
frame.groupby("site")["load"].mean().plot.bar(ax=ax)
fig.savefig("bars.png", dpi=60)
plt.close(fig)
# %% table
table = frame.groupby("site").agg(n=("load", "size"), mean=("load", "mean"), peak=("load", "max")).round(2)
# %% report
with open("report.md", "w") as out:
    print("# Loads", file=out)
    print(table.to_string(), file=out)
    print(f"limits {low:.2f} {high:.2f}", file=out)
    for image in ["lines.png", "bars.png"]:
        print(f"![]({image})", file=out)
# %% show
print(open("report.md").read())
'''
EDITS = [
    ("title", [("sub", "report", "# Loads", "# Loads of all sites")], {"report", "show"}),
    ("limit", [("sub", "limits", "0.9", "0.8")], {"limits", "lines", "report", "show"}),
    ("style", [("sub", "style", "(4, 3)", "(5, 3)")], {"style", "lines", "bars"}),
    # `limits`, `bars` and `table` read other columns.
    ("a column", [("sub", "smooth", "rolling(5", "rolling(7")], {"smooth", "lines"}),
    ("plot", [("sub", "bars", "dpi=60", "dpi=80")], {"bars"}),
]
