rows = [row for row in rows if row["amount"] > 100]
