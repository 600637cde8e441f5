"""A theorist: from a CSV file to a figure of what happens beside what is guaranteed, and to LaTeX tables of bounds."""

from pathlib import Path

import forgetting as fg

tasks = fg.load("tasks.csv", task="sensor")
expected = fg.expect(tasks, "random", k=[1, 3, 10, 30, 100, 300])
print(expected)

axes = expected.plot(bounds=True)
axes.figure.savefig("forgetting.pdf")

bounds = fg.bounds.evaluate(tasks, "random", k=300)
print(bounds.tightest("forgetting"))
Path("bounds.tex").write_text(bounds.to_latex("forgetting"))
Path("table1.tex").write_text(fg.bounds.table("Table 1", tasks, k=300).to_latex())
