import asyncio
import concurrent.futures
import hashlib
import shutil
import sqlite3
import tempfile
import zipfile
import zoneinfo

import matplotlib
import numpy as np
import pandas as pd

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

a = np.random.default_rng(0).normal(size=(300, 300))
product = a @ a
df = pd.DataFrame({"a": range(1000), "b": np.arange(1000) * 1.5})
df.to_csv("x.csv")
mean = pd.read_csv("x.csv").groupby(df.a % 7).b.mean()
plt.plot(mean)
plt.savefig("p.png")
x, y = a[:200, :5], a[:200, 0] > 0
LogisticRegression().fit(x, y).score(x, y)
RandomForestClassifier(5, n_jobs=2).fit(x, y).score(x, y)


async def three():
    await asyncio.sleep(0.001)
    return 3


assert asyncio.run(three()) == 3
shutil.copy("x.csv", "y.csv")
with zipfile.ZipFile("z.zip", "w") as packed:
    packed.write("x.csv")
database = sqlite3.connect("d.db")
database.execute("create table t(a)")
database.commit()
database.close()
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert sum(pool.map(abs, range(10))) == 45
with tempfile.NamedTemporaryFile() as file:
    file.write(b"x")
assert hashlib.sha256(b"x").hexdigest().startswith("2d71")
zoneinfo.ZoneInfo("Europe/Berlin")
print("done")
