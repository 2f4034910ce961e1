NAME = "cross validation"
SRC = r'''
# %% imports
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
# %% data
rng = np.random.default_rng(3)
n = 600
people = pd.DataFrame({
    "age": rng.integers(18, 80, n).astype(float),
    "income": rng.lognormal(10, 0.5, n),
    "town": rng.choice(["x", "y", "z"], n),
})
people.loc[rng.choice(n, 30, replace=False), "income"] = np.nan
buys = ((people["age"] > 45) ^ (people["town"] == "y")).astype(int)
# %% split
train_x, test_x, train_y, test_y = train_test_split(people, buys, test_size=0.25, random_state=1)
# %% prepare
numeric = Pipeline([("fill", SimpleImputer(strategy="median")), ("scale", StandardScaler())])
prepare = ColumnTransformer([("n", numeric, ["age", "income"]), ("c", OneHotEncoder(), ["town"])])
# %% model
model = Pipeline([("prepare", prepare), ("fit", LogisticRegression(max_iter=500))])
# %% folds
folds = StratifiedKFold(5, shuffle=True, random_state=2)
# %% scores
scores = cross_val_score(model, train_x, train_y, cv=folds)
# %% search
search = GridSearchCV(model, {"fit__C": [0.1, 1.0, 10.0]}, cv=folds).fit(train_x, train_y)
# These times differ from run to run.
for key in ["mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time"]:
    del search.cv_results_[key]
del search.refit_time_
# %% test
accuracy = search.score(test_x, test_y)
# %% errors
wrong = test_x[search.predict(test_x) != test_y]
# %% report
print(scores.round(3), search.best_params_, round(accuracy, 3), len(wrong))
'''
EDITS = [
    ("report", [("sub", "report", "round(3)", "round(2)")], {"report"}),
    ("grid", [("sub", "search", "1.0, 10.0", "2.0")], {"search", "test", "errors", "report"}),
    ("folds", [("sub", "folds", "(5,", "(4,")], {"folds", "scores", "search", "test", "errors", "report"}),
    ("fill", [("sub", "prepare", "median", "mean")],
     {"prepare", "model", "scores", "search", "test", "errors", "report"}),
    ("new cell", [("insert", "report", "worst", "worst = wrong['age'].max()\nprint(worst)")], {"worst"}),
    ("split", [("sub", "split", "0.25", "0.2")], {"split", "scores", "search", "test", "errors", "report"}),
]
