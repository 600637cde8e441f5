"""Labels of tables that are classes: which are, which are not, what is said, and what can be done with such tasks."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forgetting as fg
from forgetting.cli import run_app
from forgetting.errors import ChoiceWarning, DataWarning, InvalidInputError, NotSupportedError, ProblemFileError

ANIMALS = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay"]
N = 100
RNG = np.random.default_rng(11)
CODE = np.repeat(np.arange(10), 10)  # ten classes of ten rows
SPLIT = CODE // 2  # five tasks of two classes
MIXED = np.arange(N) % 5  # five tasks with all classes
X = (RNG.standard_normal((10, 12))[CODE] + 0.1 * RNG.standard_normal((N, 12))).round(6)
WORDS = [ANIMALS[code] for code in CODE]


def frame(labels, task=SPLIT, label="y", rows=slice(None)):
    columns = {"task": np.asarray(task), **{f"x{j}": X[:, j] for j in range(12)}}
    made = pd.DataFrame(columns)
    made[label] = labels
    return made[rows]


def said(source, **options):
    """The tasks, and the doubts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tasks = fg.load(source, **options)
    assert all(issubclass(warning.category, DataWarning) and warning.filename == __file__ for warning in caught)
    return tasks, [str(warning.message) for warning in caught if warning.category is DataWarning]


def same(tasks, expected):
    assert tasks.classes == expected.classes
    assert tasks.names == expected.names
    assert tasks.outputs == expected.outputs
    for m in range(expected.num_tasks):
        for mine, theirs in zip(tasks.task(m), expected.task(m), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    return True


def csv(folder, table, name="rows.csv"):
    table.to_csv(folder / name, index=False)
    return folder / name


def parquet(folder, table, name="rows.parquet"):
    pq.write_table(table if isinstance(table, pa.Table) else pa.Table.from_pandas(table), folder / name)
    return folder / name


def arrow(labels, **types):
    columns = frame(labels).to_dict("list")
    return pa.table({**columns, **{name: pa.array(columns[name], kind) for name, kind in types.items()}})


#: containers of the same rows with words for labels
CONTAINERS = {
    "frame": lambda folder: frame(WORDS),
    "objects": lambda folder: frame(pd.Series(WORDS, dtype=object)),
    "string": lambda folder: frame(pd.Series(WORDS, dtype="string")),
    "category": lambda folder: frame(pd.Categorical(WORDS)),
    "category, unused and in another order": lambda folder: frame(pd.Categorical(WORDS, ["zebra", *ANIMALS[::-1]])),
    "arrays": lambda folder: (X, WORDS, SPLIT),
    "array of objects": lambda folder: {"X": X, "y": np.array(WORDS, dtype=object), "task": SPLIT},
    "series": lambda folder: (X, pd.Series(WORDS, dtype="category"), SPLIT),
    "pairs": lambda folder: {str(m): (X[m == SPLIT], np.array(WORDS)[m == SPLIT]) for m in range(5)},
    "table": lambda folder: arrow(WORDS),
    "dictionary": lambda folder: arrow(WORDS, y=pa.dictionary(pa.int8(), pa.string())),
    "large strings": lambda folder: arrow(WORDS, y=pa.large_string()),
    "csv": lambda folder: csv(folder, frame(WORDS)),
    "semicolons": lambda folder: csv(folder, frame(WORDS)),
    "parquet": lambda folder: parquet(folder, frame(WORDS)),
    "parquet, categories": lambda folder: parquet(folder, frame(pd.Categorical(WORDS))),
    "two files": lambda folder: [
        csv(folder, frame(WORDS)[:47], "a.csv"), parquet(folder, frame(WORDS)[47:], "b.parquet")
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CONTAINERS)
def test_words_are_classes_in_every_container(name, tmp_path):
    source = CONTAINERS[name](tmp_path)
    tasks, warned = said(source)
    assert same(tasks, fg.RegressionTasks.from_labels(X, WORDS, SPLIT))
    assert warned == []
    assert tasks.notes[0] == (
        "labels are 10 classes, with an output each: 'ant', 'bee', 'cat', 'dog', 'elk', ...; each class is seen in one "
        "task only"
    )
    assert sum("class" in note for note in tasks.notes) == 1
    told, _ = said(source, classes="task")
    assert same(told, fg.RegressionTasks.from_labels(X, WORDS, SPLIT, classes="task"))
    assert told.notes[0].startswith("labels are 10 classes, with 2 outputs, for those of a task: 'ant', 'bee'")
    signs, _ = said(source, positive="bee")
    assert (signs.outputs, signs.task(0)[1].tolist()) == (None, [-1] * 10 + [1] * 10)
    for none in (None, "none"):
        with pytest.raises((InvalidInputError, ProblemFileError), match="column 'y': 'ant' is not a number"):
            fg.load(source, classes=none)


#: labels, tasks, the name of their column, and why they count as classes ("" without a doubt); None if they are numbers
RULES = {
    "whole numbers called label": (CODE, MIXED, "label", "because of its name"),
    "whole numbers called class": (CODE, MIXED, "class", "because of its name"),
    "whole numbers called target": (CODE, MIXED, "Target", "because of its name"),
    "other names": (CODE, MIXED, "grade", None),
    "a task has at most half": (CODE, SPLIT, "y", "since no task has more than half of them"),
    "a task has exactly half": (CODE, CODE // 5, "y", "since no task has more than half of them"),
    "a task has more than half": (CODE, np.where(CODE < 6, 0, 1), "y", None),
    "one task": (CODE, np.zeros(N), "y", None),
    "floats": (CODE.astype(float), SPLIT, "label", None),
    "halves": (CODE / 2, SPLIT, "label", None),
    "unsigned": (CODE.astype(np.uint8), SPLIT, "y", "since no task has more than half of them"),
    "negative": (CODE - 5, SPLIT, "y", "since no task has more than half of them"),
    "objects": (pd.Series(CODE, dtype=object), SPLIT, "y", "since no task has more than half of them"),
    "words of numbers": ([str(code) for code in CODE], SPLIT, "y", "since no task has more than half of them"),
    "words of floats": ([f"{code}.0" for code in CODE], SPLIT, "label", None),
    "words of some floats": ([f"{c}.0" if c == 3 else str(c) for c in CODE], SPLIT, "label", None),
    "words of numbers in all tasks": ([str(code) for code in CODE], MIXED, "y", None),
    "objects that are floats": (pd.Series(CODE, dtype=float).astype(object), SPLIT, "label", None),
    "nullable": (pd.array(CODE, dtype="Int64"), SPLIT, "y", "since no task has more than half of them"),
    "three values": (np.minimum(CODE, 2), MIXED, "class", "because of its name"),
    "two values": (CODE % 2, MIXED, "class", None),
    "signs": (CODE % 2 * 2 - 1, MIXED, "class", None),
    "truth values": (CODE % 2 == 1, MIXED, "class", None),
    "a value that occurs four times": (np.where(np.arange(N) < 4, 10, CODE), MIXED, "label", None),
    "a value that occurs five times": (np.where(np.arange(N) < 5, 10, CODE), MIXED, "label", "because of its name"),
    "categories of numbers": (pd.Categorical(CODE), MIXED, "y", ""),
    "categories of halves": (pd.Categorical(CODE / 2), MIXED, "y", ""),
    "categories of two numbers": (pd.Categorical(CODE % 2), MIXED, "y", None),
    "categories of one number": (pd.Categorical([3] * N), MIXED, "y", None),
    "measurements": (X[:, 0], SPLIT, "label", None),
}


@pytest.mark.parametrize("name", RULES)
def test_which_numbers_are_classes(name, tmp_path):
    labels, task, label, reason = RULES[name]
    table = frame(labels, task, label)
    sources = [table, parquet(tmp_path, table)]
    if "categories" not in name and "truth" not in name:  # a CSV file has no types
        sources.append(csv(tmp_path, table))
    if "words" in name:  # those of Arrow are encoded when they are read
        words = table[label].tolist()
        encoded = pa.Table.from_pandas(table).set_column(
            table.columns.get_loc(label), label, pa.array(words, pa.string())
        )
        sources += [encoded, parquet(tmp_path, encoded, "encoded.parquet")]
    for source in sources:
        tasks, warned = said(source, label=label)
        numbers = np.asarray(labels, dtype=float)
        if reason is None:
            assert tasks.classes is None
            expected = fg.RegressionTasks.from_arrays(X, numbers, table["task"])
            for m in range(expected.num_tasks):
                np.testing.assert_array_equal(tasks.task(m)[1], expected.task(m)[1])
            assert all("are learned as numbers; if they are classes, give classes='all'" in text for text in warned)
            assert not any("classes, with" in note for note in tasks.notes)
        else:
            names = sorted(set(numbers.tolist()))
            assert tasks.classes[0] == tuple(str(int(n)) if n == int(n) else str(n) for n in names)
            hot = np.concatenate([tasks.task(m)[1] for m in range(tasks.num_tasks)])
            by_task = np.concatenate([numbers[table["task"] == t] for t in dict.fromkeys(sorted(table["task"]))])
            assert np.array(names)[hot.argmax(axis=1)].tolist() == by_task.tolist()
            assert len(warned) == bool(reason)
            for text in warned:
                assert text == tasks.notes[0]
                assert (
                    f"The whole numbers in column {label!r} count as classes {reason}; if they are numbers, give"
                    in text
                )
        numbers_again, warned = said(source, label=label, classes=None)
        assert numbers_again.classes is None
        assert warned == []


def test_a_hundred_whole_numbers_may_be_classes_and_one_more_may_not(tmp_path):
    for count, classes in ((100, 100), (101, None)):
        labels = np.tile(np.arange(count), 5)
        tasks, _ = said((np.arange(5.0 * count)[:, None] + 0.5, labels, labels % 2), classes="auto", label="label")
        assert (tasks.classes and len(tasks.classes[0])) == classes
    tasks, _ = said((np.arange(505.0)[:, None] + 0.5, labels, labels % 2), classes="all")
    assert tasks.classes[0][:12] == tuple(map(str, range(12)))  # by size, as from_labels has them
    assert same(tasks, fg.RegressionTasks.from_labels(np.arange(505.0)[:, None] + 0.5, labels, labels % 2))


def test_whole_numbers_that_became_floats_where_labels_are_missing_are_whole(tmp_path):
    """pandas makes floats of whole numbers with gaps, and writes them as 3.0."""
    labels = CODE.astype(float)
    labels[[3, 50]] = np.nan
    kept = ~np.isnan(labels)
    expected = fg.RegressionTasks.from_labels(X[kept], CODE[kept], SPLIT[kept])
    table = frame(labels, label="label")
    nullable = frame(pd.array(labels, dtype="Int64"), label="label")
    sources = [
        table,
        nullable,
        csv(tmp_path, table),
        csv(tmp_path, nullable, "b.csv"),
        parquet(tmp_path, table),
        table.astype(object),
    ]
    for source in sources:
        with pytest.raises(ValueError, match=r"row \d+, column 'label': .*drop_nan"):
            fg.load(source, label="label")
        tasks, (doubt,) = said(source, label="label", drop_nan=True)
        assert same(tasks, expected)
        assert doubt in tasks.notes
        assert any("2 rows with missing numbers dropped" in note for note in tasks.notes)
    missing_feature = frame(CODE.astype(float), label="label")
    missing_feature.loc[3, "x0"] = np.nan
    assert said(missing_feature, label="label", drop_nan=True)[0].classes is None  # all labels are there: floats


#: labels, options, and the message
REFUSED = {
    "two words": (
        ["cat", "dog"] * 50,
        {},
        "row 0, column 'y': 'cat' is not a number; for classes, give classes='all' "
        r"\(--classes all\), or name the one that counts as \+1 with positive='dog' \(--positive dog\)",
    ),
    "one word": (["cat"] * N, {}, "all labels in column 'y' are 'cat'; two classes are needed"),
    "one class": (["cat"] * N, {"classes": "all"}, "all labels in column 'y' are 'cat'; two classes are needed"),
    "one number": ([7] * N, {"classes": "task"}, "all labels in column 'y' are '7'; two classes are needed"),
    "mixed types": ([1, "cat", 2.5, 3] * 25, {}, "row 1, column 'y': 'cat' is not a number; for classes, give cl"),
    "a missing word": (["cat", None, "dog", "owl"] * 25, {}, "row 1, column 'y': there is no label.*drop_nan"),
    "nothing": (["cat", "NA", "dog", "owl"] * 25, {}, r"row 1, column 'y': there is no label \('NA' stands for none"),
    "words of rows": ([f"row {i}" for i in range(N)], {}, "column 'y' has 100 different words in 100 rows, which are"),
    "halves": ([0.5, 1.5] * 50, {"classes": "all"}, "row 0, column 'y': 0.5 is no class; classes are whole numbers or"),
    "infinity": ([1.0, np.inf] * 50, {"classes": "all"}, "row 1, column 'y': inf is not a number to compute with"),
    "both options": (["a", "b"] * 50, {"classes": "all", "positive": "a"}, r"positive= \(--positive\) makes labels"),
    "another word": (["a", "b"] * 50, {"classes": "each"}, "classes must be one of auto, all, task, none, got 'each'"),
    "no word": (["a", "b"] * 50, {"classes": 3}, "classes must be one of auto, all, task, none, got 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_labels_that_are_no_classes_are_refused_with_the_place(name, tmp_path):
    labels, options, words = REFUSED[name]
    table = frame(pd.Series(labels, dtype=object))
    with pytest.raises(InvalidInputError, match=words):
        fg.load(table, **options)
    in_file = words.replace("row 0", "row 2").replace("row 1", "row 3").replace("row 1, ", "").replace("'NA'", ".*")
    with pytest.raises((ProblemFileError, InvalidInputError), match=in_file) as error:
        fg.load(csv(tmp_path, table), **options)
    assert ("rows.csv" in str(error.value)) == ("column" in words)


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_times_are_no_classes(unit):
    with pytest.raises(InvalidInputError, match="row 0, column 'y': '2024-01-01' is not a number"):
        fg.load(frame(pd.date_range("2024-01-01", periods=5).as_unit(unit).repeat(20)))


def test_two_values_are_classes_where_the_caller_says_so(tmp_path):
    for labels, names in (
        (["dog", "cat"] * 50, ("cat", "dog")),
        ([True, False] * 50, ("False", "True")),
        ([1, 0] * 50, ("0", "1")),
        (pd.Categorical(["dog", "cat"] * 50), ("cat", "dog")),
    ):
        table = frame(labels)
        for source in (table, csv(tmp_path, table), parquet(tmp_path, table), pa.Table.from_pandas(table)):
            tasks, warned = said(source, classes="all")
            assert tasks.classes == (names,) * 5
            assert warned == []
            assert tasks.task(0)[1][:2].tolist() == [[0, 1], [1, 0]]


def test_names_of_classes_are_kept_as_they_are(tmp_path):
    odd = ["große Ölkanne", "中文 字", "a, b", "=1+1", 'with "quotes"', "1", "1.0", "it's", "two\nlines", "UPPER"]
    labels = [odd[code] for code in CODE]
    table = frame(labels)
    for source in (table, parquet(tmp_path, table)):
        tasks, _ = said(source, classes="all")
        assert tasks.classes[0] == tuple(sorted(odd))
        assert same(tasks, fg.RegressionTasks.from_labels(X, labels, SPLIT))
        tasks.save(tmp_path / "saved.npz")
        assert fg.load(tmp_path / "saved.npz").classes == tasks.classes
    numbers = [["1", "1.0", "2", "+3"][code % 4] for code in CODE]  # alone, words that spell one number are one class
    assert said(frame(numbers), classes="all")[0].classes[0] == ("1", "2", "3")


def test_saved_tasks_are_never_read_otherwise(tmp_path):
    tasks = fg.RegressionTasks.from_arrays(X, CODE, SPLIT)
    tasks.save(tmp_path / "saved.npz")
    again, warned = said(tmp_path / "saved.npz")
    assert (again.classes, again.outputs, warned) == (None, None, [])
    for source in (tmp_path / "saved.npz", tasks):
        for classes in ("all", "task", None):
            with pytest.raises(InvalidInputError, match=r"classes= \(--classes\) would have no effect"):
                fg.load(source, classes=classes)
    np.savez(tmp_path / "plain.npz", X=X, y=CODE, task=SPLIT)  # arrays that this library did not save are rows
    (doubt,) = said(tmp_path / "plain.npz")[1]
    assert "are learned as numbers; if they are classes, give classes='all'" in doubt


@pytest.mark.parametrize("labels", [CODE, CODE.astype(float), np.array(WORDS)], ids=["whole", "floats", "words"])
@pytest.mark.parametrize("column", ["y", "label"])
def test_labels_of_npz_files_are_classes_only_if_the_caller_says_so(labels, column, tmp_path):
    path = tmp_path / "plain.npz"
    np.savez(path, X=X, task=SPLIT, **{column: labels})
    (tmp_path / "csv").mkdir()
    table = csv(tmp_path / "csv", frame(labels, label=column).rename(columns={f"x{j}": j for j in range(12)}))
    for source in (path, [path], [path, table]):  # one such file among several is enough
        if labels.dtype.kind == "U":
            with pytest.raises((ProblemFileError, InvalidInputError), match="'ant' is not a number; for classes, give"):
                fg.load(source, label=column)
        else:
            assert said(source, label=column)[0].classes is None
            assert said(source, label=column, classes=None)[1] == []
    assert same(said(path, label=column, classes="all")[0], fg.RegressionTasks.from_labels(X, labels, SPLIT))
    positive = str(labels[0]) if labels.dtype.kind == "U" else "0"
    assert said(path, label=column, positive=positive)[0].task(0)[1].tolist() == [1] * 10 + [-1] * 10


def test_a_choice_of_classes_is_said_once_with_the_way_to_say_it():
    for source in (frame(WORDS), (X, WORDS, SPLIT)):
        with pytest.warns(ChoiceWarning) as caught:
            tasks = fg.load(source)
        (warning,) = caught
        assert str(warning.message) == f"{tasks.notes[0]}. If this is meant, classes='all' (--classes all) says so"
        assert warning.filename == __file__
        for options in ({"classes": "all"}, {"classes": "task"}, {"positive": "ant"}):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                fg.load(source, **options)
    with pytest.warns(ChoiceWarning, match="labels are 10 classes"):
        fg.audit(frame(WORDS))


def test_an_option_that_is_not_there_is_named_with_each_other_once():
    with pytest.raises(InvalidInputError, match="there is no option 'clases'; did you mean 'classes'") as error:
        fg.load(frame(WORDS), clases="all")
    assert str(error.value).count("loss") == 1


# ----------------------------------------------------------------------------------------------- what such tasks can do


def test_tasks_of_classes_are_prepared_split_saved_and_learned_like_others(tmp_path):
    tasks, _ = said(frame(WORDS), intercept=True, standardize="all", loss="mean")
    assert tasks.classes[0] == tuple(ANIMALS)
    assert tasks.notes[0].startswith("labels are 10 classes")
    train, test = fg.datasets.hold_out(tasks, 0.3)
    assert train.classes == test.classes == tasks.classes
    run = fg.run(train, "cyclic", k=5)
    assert run.accuracy.shape == (6, 5)
    assert run.accuracy[0] == pytest.approx(0.1)
    assert run.accuracy[1, 0] == 1.0
    e = fg.expect(train, "cyclic", 5, test=test, quantities=("accuracy", "test_accuracy"))
    assert e.values["accuracy"] == pytest.approx(run.accuracy[-1].mean())
    tasks.save(tmp_path / "saved.npz")
    again = fg.load(tmp_path / "saved.npz")
    assert same(again, tasks)
    assert fg.audit(tasks).notes[0] == tasks.notes[0]
    assert tasks.notes[0] in fg.audit(again).notes  # a file has no notes


def test_kernel_tasks_with_one_hot_labels_have_accuracies():
    tasks, _ = said(frame(WORDS))
    hot = np.concatenate([tasks.task(m)[1] for m in range(5)])
    kernel = fg.KernelTasks(X @ X.T, hot, SPLIT)
    run, plain = (fg.run(problem, "cyclic", k=5) for problem in (kernel, tasks))
    np.testing.assert_allclose(run.accuracy[1:], plain.accuracy[1:])
    assert fg.audit(kernel).measure("training accuracy").given == pytest.approx(plain.accuracy[-1].mean())


def test_ten_classes_in_a_frame_are_five_lines_from_their_audit():
    table = frame(CODE, label="label").rename(columns={"task": "session"})
    shuffled = table.sample(frac=1, random_state=3)
    tasks, (doubt,) = said(shuffled, task="session", label="label", intercept=True)
    audit = fg.audit(tasks)
    assert audit.measure("training accuracy").given > 0
    assert audit.notes[0] == doubt
    assert [task.name for task in audit.tasks] == ["0", "1", "2", "3", "4"]
    assert sum("class" in note for note in audit.notes) == 1


def test_an_audit_of_arrays_says_once_that_whole_numbers_are_learned_as_numbers():
    said_of = "the labels are the numbers 0, 1, 2, 3, 4, ..., and are learned as numbers; if they are classes, "
    numbers = fg.RegressionTasks.from_arrays(X, CODE, SPLIT)
    doubted, _ = said(frame(CODE, MIXED))
    for tasks, remedy in ((numbers, "make the tasks by RegressionTasks.from_labels"), (doubted, "give classes='all'")):
        (note,) = (note for note in fg.audit(tasks).notes if "class" in note)
        assert note.startswith(said_of + remedy)


HELD_OUT = np.arange(N) % 10 >= 8  # two rows of each class: too few to be known as classes by themselves


@pytest.mark.parametrize("classes", ["all", "task"])
def test_labels_of_held_out_rows_are_the_classes_of_the_tasks(classes, tmp_path):
    train, held = (frame(CODE, rows=rows) for rows in (~HELD_OUT, HELD_OUT))
    tasks, _ = said(train, classes=classes)
    own, _ = said(held, classes=classes)
    e = fg.expect(tasks, "cyclic", 5, test=own, quantities=("test_loss", "test_accuracy"))
    missing = held[held["y"] != 3]  # a class that is not held out has its output all the same
    for source in (
        held,
        own,
        csv(tmp_path, held),
        held.astype({"y": float}),
        parquet(tmp_path, held.sample(frac=1, random_state=2)),
    ):
        audit = fg.audit(tasks, test=source)
        assert audit.measure("held-out accuracy").given == pytest.approx(e.values["test_accuracy"])
        assert audit.measure("held-out loss").given == pytest.approx(e.values["test_loss"])
    w = fg.run(tasks, "cyclic", k=5).iterates[-1]
    some = fg.audit(tasks, test=missing).measure("held-out accuracy").given
    right = [own.accuracy(w)[m] for m in range(5)]
    rows = missing["task"] == 1
    outputs = missing.loc[rows, [f"x{j}" for j in range(12)]].to_numpy() @ w
    place = tasks.classes[1].index("2")
    right[1] = np.mean(outputs[:, : len(tasks.classes[1])].argmax(axis=1) == place)
    assert some == pytest.approx(np.mean(right))


def test_classes_that_were_never_learned_are_named_with_their_place(tmp_path):
    tasks, _ = said(frame(WORDS, rows=~HELD_OUT))
    labels = np.where(np.arange(N) == 49, "yak", WORDS)
    strange = csv(tmp_path, frame(labels, rows=HELD_OUT))
    row = 2 + int(np.flatnonzero(np.flatnonzero(HELD_OUT) == 49)[0])
    with pytest.raises(
        ProblemFileError, match=rf"rows\.csv, row {row}, column 'y': 'yak' is no class of the tasks; .*jay"
    ):
        fg.audit(tasks, test=strange)
    with pytest.raises(InvalidInputError, match="test, task '2': 'yak' is no class of the task"):
        fg.audit(tasks, test=fg.load(frame(labels, rows=HELD_OUT)))
    with pytest.raises(ProblemFileError, match="column 'y': 'ant' is not a number"):
        fg.audit(said(frame(CODE), classes=None)[0], test=csv(tmp_path, frame(WORDS)))
    told, _ = said(frame(WORDS), classes="task")
    swapped = frame(WORDS)
    swapped.loc[0, "y"] = "jay"  # known, but to another task
    with pytest.raises(
        InvalidInputError, match="test, task '0': 'jay' is no class of the task; its classes are ant, bee"
    ):
        fg.audit(told, test=swapped)


def test_a_stream_says_why_its_labels_are_numbers(tmp_path):
    path = parquet(tmp_path, frame(WORDS))
    reason = "since classes would be known after the last row only, and its factors have no accuracy"
    for call in (
        lambda: fg.RegressionTasks.from_source(path, "y", "task", cache=False),
        lambda: fg.RegressionTasks.from_source(X, WORDS, SPLIT),
        lambda: fg.RegressionTasks.from_source(X, CODE, SPLIT, classes="all"),
    ):
        with pytest.raises((InvalidInputError, ProblemFileError), match=reason):
            call()
    hot = np.eye(10)[CODE]  # what the message advises
    tasks = fg.RegressionTasks.from_source(X[:, :3], hot, SPLIT)
    w = np.ones((3, 10))
    assert tasks.task_losses(w) == pytest.approx(fg.RegressionTasks.from_labels(X[:, :3], WORDS, SPLIT).task_losses(w))
    with pytest.raises(NotSupportedError, match="accuracy"):
        tasks.accuracy(w)


# --------------------------------------------------------------------------------------------------------- the commands


def test_one_command_audits_ten_classes_and_says_first_what_they_are(tmp_path, capfd):
    """In one stream, as in a terminal: what is said about the labels comes before the result."""
    path = csv(tmp_path, frame(CODE, label="label", rows=~HELD_OUT).sample(frac=1, random_state=1))
    held = csv(tmp_path, frame(CODE, label="label", rows=HELD_OUT), "held.csv")
    assert run_app(["audit", str(path), "--label", "label", "--test", str(held)]) == 0
    out, err = capfd.readouterr()
    assert "held-out accuracy" in out
    lines = err.splitlines()
    assert lines[0].startswith(
        "warning: labels are 10 classes, with an output each: '0', '1', '2', '3', '4', ...; each"
    )
    assert sum("class" in line for line in lines) == 1
    assert "warning" not in out


def test_notes_are_printed_before_anything_is_computed(tmp_path, capfd, monkeypatch):
    path = csv(tmp_path, frame(CODE, label="label"))

    def stop(*_, **__):
        raise InvalidInputError("computed")

    for name in ("run", "expect", "certify", "optimal_weights", "auditing.audit", "bounds.evaluate"):
        monkeypatch.setattr(f"forgetting.{name}", stop)
    (tmp_path / "my.toml").write_text("[problem]\nfile = 'rows.csv'\nlabel = 'label'\n")
    of_file, of_config = [str(path), "--label", "label"], [str(tmp_path / "my.toml")]
    steps = ["-k", "2"]
    for words in (
        *([command, *of_file, *steps] for command in ("run", "expect", "weights", "bounds", "certify")),
        ["audit", *of_file],
        ["run", *of_config, *steps],
    ):
        assert run_app(words) == 2
        lines = capfd.readouterr().err.splitlines()
        assert lines[0].startswith("warning: labels are 10 classes")
        assert lines[1] == "note: tasks are in the order of their rows: '0', '1', '2', '3', '4'"
        assert lines[2] == "error: computed"


@pytest.mark.parametrize(("word", "outputs"), [("all", 10), ("task", 2), ("none", None), ("auto", 10)])
def test_commands_and_configs_say_what_is_a_class(word, outputs, tmp_path, monkeypatch):
    from forgetting.cli.problems import Source, read_config
    from forgetting.tasks.readers import Columns

    csv(tmp_path, frame(CODE))
    monkeypatch.chdir(tmp_path)
    assert Source(["rows.csv"], columns=Columns(classes=word)).load().problem.outputs == outputs
    (tmp_path / "my.toml").write_text(f"[problem]\nfile = 'rows.csv'\nclasses = '{word}'\n")
    assert read_config(tmp_path / "my.toml").problem.outputs == outputs


def test_a_wrong_word_and_a_useless_option_are_refused_by_commands(tmp_path, capsys, monkeypatch):
    csv(tmp_path, frame(WORDS))
    fg.families.two_lines(0.5).save(tmp_path / "saved.npz")
    (tmp_path / "my.toml").write_text("[problem]\nfile = 'rows.csv'\nclasses = 'each'\n")
    monkeypatch.chdir(tmp_path)
    for words, message in (
        (["run", "rows.csv", "--classes", "each"], "classes must be one of auto, all, task, none, got 'each'"),
        (["run", "my.toml"], "my.toml: classes must be one of auto, all, task, none, got 'each'"),
        (["run", "my.toml", "--classes", "all"], "my.toml is a config, which says in [problem] how its file is read"),
        (
            ["run", "saved.npz", "--classes", "all"],
            "saved.npz: holds a saved collection of tasks, so that classes= (--cl",
        ),
        (
            ["run", "orthogonal", "d=3", "--classes", "none"],
            "orthogonal is a family of tasks, so that classes= (--classes) would",
        ),
        (
            ["audit", "digits", "--classes", "task"],
            "digits are images, so that classes= (--classes) would have no effect",
        ),
        (["run", "rows.csv", "--classes", "all", "--positive", "ant"], "positive= (--positive) makes labels +1 and -1"),
    ):
        assert run_app(words) == 2
        assert message in capsys.readouterr().err
