"""The designer of a benchmark: ten classes in a CSV file, to a page that says what the order of the tasks does."""

import forgetting as fg

tasks = fg.load("digits.csv", label="class")
print(tasks)
print(*tasks.notes, sep="\n")

run = fg.run(tasks, "cyclic", k=tasks.num_tasks)
print("accuracy on each task after the last:", run.accuracy[-1].round(2))

audit = fg.audit(tasks, loss="mean")
print(audit)
audit.write_page("audit.html")
