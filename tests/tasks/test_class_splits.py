"""Class-incremental benchmarks: what goes in, what is refused, and the tasks of a class order."""

import math

import numpy as np
import pytest
from scipy import sparse

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.tasks.class_splits import codes_of

ROWS = np.arange(24.0).reshape(8, 3) ** 1.5
NAMES = ["ant", "bee", "cat", "dog"] * 2


def test_sizes_are_as_equal_as_possible_and_the_first_tasks_are_larger():
    X, labels = np.eye(10), range(10)
    assert fg.ClassSplits(X, labels).sizes == (2,) * 5
    assert fg.ClassSplits(X, labels, tasks=4).sizes == (3, 3, 2, 2)
    assert fg.ClassSplits(X, labels, tasks=[1, 9]).sizes == (1, 9)
    splits = fg.ClassSplits(X, labels, tasks=4)
    assert splits.num_orders == math.factorial(10) // (6 * 6 * 2 * 2)
    assert splits.num_sets == math.comb(10, 3) + math.comb(10, 2)
    assert splits.num_rows.tolist() == [1] * 10


def test_classes_are_sorted_as_numbers_or_as_words():
    assert fg.ClassSplits(np.eye(3), [10, 9, 2], tasks=3).class_names == ("2", "9", "10")
    splits = fg.ClassSplits(ROWS, NAMES, tasks=2)
    assert splits.class_names == ("ant", "bee", "cat", "dog")
    assert repr(splits) == "ClassSplits(4 classes in 2 tasks of 2, 8 rows, d=3)"
    assert splits.to_table().columns == ("class", "rows")


def test_held_out_classes_may_be_spelt_as_words_where_learned_ones_are_numbers():
    splits = fg.ClassSplits(np.eye(2), [2, 10], 2, (np.array([[5.0, 0.0], [0.0, 7.0]]), ["2", "10"]))
    assert splits.class_names == ("2", "10")
    assert splits.test_tasks([2, 10]).task(0)[0].tolist() == [[5.0, 0.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": 5}, "tasks = 5, but there are only 4 classes"),
        ({"tasks": 1}, "one task learns all classes at once"),
        ({"tasks": 0}, "tasks must be at least 1"),
        ({"tasks": [2, 3]}, "sizes 2, 3 sum to 5, but there are 4 classes"),
        ({"tasks": "3"}, r"tasks: expected a number of tasks, or the number of classes of each, got '3'"),
        ({"tasks": []}, r"tasks: expected a number of tasks, or the number of classes of each, got \[\]"),
        ({"tasks": 2, "labels": [1, "1"] * 4}, "there is only 1 class, and"),
        ({"tasks": [4, 0]}, r"tasks\[1\] must be at least 1"),
        ({"tasks": 2, "labels": NAMES[:7]}, "X has 8 rows, but there are 7 labels"),
        ({"tasks": 2, "labels": [0.5] * 8}, r"labels\[0\] is 0.5; classes are whole numbers or words"),
        ({"tasks": 2, "X": ROWS[0]}, "X: expected a matrix with a row for each example, got shape"),
        ({"tasks": 2, "X": np.where(ROWS[3, 1] == ROWS, np.nan, ROWS)}, "X: entry at row 3, column 1 is nan"),
        ({"tasks": 2, "classes": "both"}, "classes"),
        ({"tasks": 2, "test": (ROWS[:1], ["owl"])}, "test: row 0 is of the class 'owl', which was never learned"),
        ({"tasks": 2, "test": (ROWS[:2], ["ant", "cat"])}, "test: no rows of classes 'bee' and 'dog'"),
        ({"tasks": 2, "test": (ROWS[:, :2], NAMES)}, "test: X has 2 columns, but the learned rows have 3"),
        ({"tasks": 2, "test": (ROWS, NAMES, 1)}, r"test: expected \(X, labels\), got 3 parts"),
        ({"tasks": 2, "test": (np.where(ROWS == 0, np.inf, ROWS), NAMES)}, "test: X: entry at row 0, column 0 is inf"),
    ],
)
def test_what_is_wrong_is_named(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.ClassSplits(**{"X": ROWS, "labels": NAMES, **arguments})


def test_functions_that_take_tasks_say_what_to_call():
    splits = fg.ClassSplits(ROWS, NAMES, tasks=2)
    for call in (
        lambda: fg.run(splits, "cyclic", k=2),
        lambda: fg.run_many(splits, "random", k=2, runs=2),
        lambda: fg.expect(splits, "random", k=2),
        lambda: fg.certify(splits, "cyclic", 2),
        lambda: fg.bounds.evaluate(splits, "cyclic", 2),
    ):
        with pytest.raises(InvalidInputError, match=r"splits.tasks\(order\).*fg.audit\(splits\) compares class orders"):
            call()


def test_an_order_is_a_list_of_classes_or_of_tasks():
    splits = fg.ClassSplits(ROWS, NAMES, tasks=[1, 3])
    for order in (
        ["dog", "cat", "ant", "bee"],
        [["dog"], ["cat", "ant", "bee"]],
        np.array(["dog", "cat", "ant", "bee"]),
    ):
        assert codes_of(splits, order).tolist() == [3, 0, 1, 2]
        assert splits.tasks(order).names == ("dog", "ant, bee, cat")
    for order, message in (
        (["dog", "cat", "ant"], "names each of the 4 classes once; got one without class 'bee'"),
        (["dog", "dog", "ant", "bee"], "without class 'cat' and with class 'dog' more than once"),
        ([["dog", "cat"], ["ant", "bee"]], "tasks of 2 and 2 classes, but the benchmark has tasks of 1 and 3"),
        (["dgo", "cat", "ant", "bee"], r"order\[0\]: no class 'dgo'; did you mean 'dog'"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            splits.tasks(order)


@pytest.mark.parametrize("classes", ["all", "task"])
def test_the_tasks_of_an_order_are_those_of_from_labels(classes):
    splits = fg.ClassSplits(sparse.csr_array(ROWS), NAMES, 2, classes=classes)
    tasks = splits.tasks(["cat", "ant", "dog", "bee"])
    groups = [0 if name in ("ant", "cat") else 1 for name in NAMES]
    wanted = fg.RegressionTasks.from_labels(ROWS, NAMES, groups, classes=classes)
    assert tasks.classes == wanted.classes
    for task in range(2):
        for ours, theirs in zip(tasks.task(task), wanted.task(task), strict=True):
            np.testing.assert_array_equal(ours.toarray() if sparse.issparse(ours) else ours, theirs)
    with pytest.raises(NotSupportedError, match="no held-out rows"):
        splits.test_tasks(["cat", "ant", "dog", "bee"])


def test_too_many_orders_are_drawn_and_not_listed():
    splits = fg.ClassSplits(np.eye(20), range(20), 10)
    with pytest.raises(NotSupportedError, match=r"there are 10\^15 class orders, too many to list; draw\(n\)"):
        splits.orders()
    drawn = splits.draw(3, seed=1)
    assert (np.sort(drawn.astype(int), axis=1) == np.arange(20)).all()
    np.testing.assert_array_equal(drawn, splits.draw(3, seed=1))


def test_a_table_becomes_a_benchmark(tmp_path):
    lines = ["id,kind,a,b"] + [f"{row},{NAMES[row]},{row},{row * row}" for row in range(8)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    splits = fg.ClassSplits.from_table(path, 2, path, label="kind", drop="id")
    assert repr(splits) == "ClassSplits(4 classes in 2 tasks of 2, 8 rows, 8 held out, d=2)"
    direct = fg.ClassSplits(np.array([[row, row * row] for row in range(8)]), NAMES, 2)
    codes = direct.partitions.all()
    np.testing.assert_array_equal(codes, splits.partitions.all())
    for ours, theirs in zip(splits.tasks(NAMES[:4]).task(0), direct.tasks(NAMES[:4]).task(0), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ProblemFileError, match=r"no column 'class' for the labels; the columns are id, kind, a, b"):
        fg.ClassSplits.from_table(path, 2, label="class")
    other = tmp_path / "others.csv"
    other.write_text("\n".join(line.split(",", 1)[1] for line in lines), encoding="utf-8")
    with pytest.raises(InvalidInputError, match="'id' is not in both tables"):
        fg.ClassSplits.from_table(path, 2, other, label="kind")
    path.write_text("\n".join([*lines, "9,ant,,3"]), encoding="utf-8")
    with pytest.raises(ProblemFileError, match=r"row 10, column 'a'.*drop such rows with drop_nan"):
        fg.ClassSplits.from_table(path, 2, label="kind", drop="id")
    assert len(fg.ClassSplits.from_table(path, 2, label="kind", drop="id", drop_nan=True).num_rows) == 4
    with pytest.raises(InvalidInputError, match="table: expected a file, a DataFrame, or a mapping"):
        fg.ClassSplits.from_table(3)


def test_a_frame_becomes_a_benchmark():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(ROWS, columns=list("abc")).assign(y=NAMES)
    splits = fg.ClassSplits.from_table(frame, 2)
    direct = fg.ClassSplits(frame.drop(columns="y"), frame["y"], 2)
    for made in (splits, direct):
        np.testing.assert_allclose(made.tasks(NAMES[:4]).task(0)[0], ROWS[[0, 1, 4, 5]])
