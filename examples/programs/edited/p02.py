NAME = "sqlite and files"
SRC = r'''
# %% imports
import csv
import sqlite3
# %% rows
rows = [(i, f"P{i % 40:02d}", i % 9 + 1, (i * 733) % 5000 / 100) for i in range(4000)]
# %% export
with open("orders.csv", "w", newline="") as out:
    writer = csv.writer(out)
    writer.writerow(["id", "sku", "qty", "price"])
    writer.writerows(rows)
# %% load
con = sqlite3.connect("shop.db")
con.execute("drop table if exists orders")
con.execute("create table orders(id integer primary key, sku text, qty integer, price real)")
with open("orders.csv", newline="") as source:
    con.executemany("insert into orders values(:id, :sku, :qty, :price)", list(csv.DictReader(source)))
con.commit()
con.close()
# %% totals
con = sqlite3.connect("shop.db")
totals = con.execute(
    "select sku, round(sum(qty * price), 2) from orders group by sku order by 2 desc, 1"
).fetchall()
con.close()
# %% best
best = totals[:5]
# %% keep
con = sqlite3.connect("shop.db")
con.execute("create table if not exists best(sku text, total real)")
con.execute("delete from best")
con.executemany("insert into best values(?, ?)", best)
con.commit()
con.close()
# %% text
with open("best.txt", "w") as out:
    for sku, total in best:
        out.write(f"{sku}\t{total}\n")
# %% report
print(open("best.txt").read().strip())
'''
EDITS = [
    ("report", [("sub", "report", ".strip()", ".strip().lower()")], {"report"}),
    ("how many", [("sub", "best", "[:5]", "[:8]")], {"best", "keep", "text", "report"}),
    ("query", [("sub", "totals", "qty * price", "qty")], {"totals", "best", "keep", "text", "report"}),
    ("index", [("sub", "load", "con.commit()", 'con.execute("create index by_sku on orders(sku)")\ncon.commit()')],
     {"load", "totals", "keep"}),
    ("rows", [("sub", "rows", "5000", "7000")],
     {"rows", "export", "load", "totals", "best", "keep", "text", "report"}),
]
