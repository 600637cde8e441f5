"""The designer of a class-incremental benchmark: ten lines from a DataFrame of features to a page on class orders."""

import pandas as pd

import forgetting as fg

frame = pd.read_csv("digits.csv").drop(columns="task")
held = frame.sample(frac=0.4, random_state=0)
splits = fg.ClassSplits.from_table(frame.drop(held.index), tasks=5, test=held, label="class")
audit = fg.audit(splits, order=range(10), scheme="ridge lam=1000", title="digits")
print(*audit.opening, sep="\n")
audit.write_page("class_orders.html")
worst = splits.tasks(audit.measures[0].worst.order)
print("accuracy on each task of the worst class order:", fg.run(worst, "cyclic", k=5).accuracy[-1].round(2))
