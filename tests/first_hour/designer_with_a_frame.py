"""The designer of a benchmark with pandas: ten classes in a DataFrame, to a page that says what their order does."""

import pandas as pd

import forgetting as fg

frame = pd.read_csv("digits.csv")
frame["class"] = "digit " + frame["class"].astype(str)
tasks = fg.load(frame, label="class")
print(tasks)
print(*tasks.notes, sep="\n")

run = fg.run(tasks, "cyclic", k=tasks.num_tasks)
print("accuracy on each task after the last:", run.accuracy[-1].round(2))
print(run.to_frame())

audit = fg.audit(tasks, loss="mean")
audit.write_page("audit.html")
