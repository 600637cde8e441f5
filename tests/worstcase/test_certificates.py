"""Certificates: what they prove, that a changed digit is noticed, and that nothing false can be proved."""

import copy
import json
import random
import subprocess
import sys
from fractions import Fraction
from itertools import groupby, permutations, product
from math import prod

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.worstcase import DualCertificate, check_certificate
from forgetting.worstcase.check_certificate import check, digest

ASKED = {
    "uniform": (3, 2, {}),
    "many tasks": (7, 2, {}),
    "all numbers of tasks": (np.inf, 2, {"quantity": "forgetting"}),
    "weighted": (2, 2, {"quantity": "next_loss", "ordering": fg.orderings.WithReplacement([0.7, 0.3])}),
    "shuffled": (3, 3, {"ordering": "without-replacement", "quantity": "forgetting"}),
    "cyclic": (3, 4, {"ordering": "cyclic", "quantity": "next_loss"}),
    "convex": (2, 2, {"kind": "convex"}),
    "convex cyclic": (2, 3, {"kind": "convex", "ordering": "cyclic"}),
}


@pytest.fixture(scope="module")
def proofs():
    return {name: fg.worst_case(T, k, **asked).certificate for name, (T, k, asked) in ASKED.items()}


def changed(certificate, **fields):
    """The content with other fields and a digest that fits."""
    data = copy.deepcopy(dict(certificate.data)) | fields
    return data | {"digest": digest(data)}


def script(path, *options):
    """The script in a Python without this library and without site-packages."""
    command = [sys.executable, "-I", "-S", *options, check_certificate.__file__, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_the_program_that_the_help_names_warns_of_nothing_and_refuses_in_one_line(proofs, tmp_path) -> None:
    proofs[next(iter(ASKED))].save(tmp_path / "proof.json")
    (tmp_path / "forged.json").write_text('{"k": 3306252529, "bits": 1000000000}')
    program = [sys.executable, "-W", "error", "-m", "forgetting.worstcase.check_certificate"]
    ends = {
        name: subprocess.run([*program, str(tmp_path / name)], capture_output=True, text=True, check=False, timeout=120)
        for name in ("proof.json", "forged.json", "nowhere.json")
    }
    assert [end.returncode for end in ends.values()] == [0, 1, 1]
    assert ends["proof.json"].stderr == ""
    assert ends["forged.json"].stderr == "not proved: no certificate, KeyError('tasks')\n"
    assert "No such file" in ends["nowhere.json"].stderr


@pytest.mark.parametrize("name", ASKED)
def test_the_script_alone_proves_what_the_library_says(proofs, name, tmp_path) -> None:
    proofs[name].save(tmp_path / "proof.json")
    shown = script(tmp_path / "proof.json")
    assert shown.returncode == 0, shown.stderr
    assert f"at most {proofs[name].verify():.12g}, for" in shown.stdout
    assert f"k = {proofs[name].data['k']} steps" in shown.stdout
    assert proofs[name].data["quantity"] in shown.stdout
    again = fg.worstcase.DualCertificate.load(tmp_path / "proof.json")
    assert again.verify() == proofs[name].verify()
    assert again.upper == proofs[name].upper
    assert str(again) == str(proofs[name])


def test_the_script_imports_nothing_but_the_standard_library() -> None:
    with open(check_certificate.__file__, encoding="utf-8") as file:
        lines = [line.split()[1] for line in file if line.startswith(("import ", "from "))]
    assert set(lines) <= {"hashlib", "json", "sys", "fractions", "operator", "math"}


@pytest.mark.parametrize("name", ASKED)
def test_a_changed_digit_anywhere_is_noticed(proofs, name) -> None:
    text = proofs[name].to_json()
    digits = [at for at, letter in enumerate(text) if letter in "0123456789"]
    for at in random.Random(0).sample(digits, 60):
        other = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
        with pytest.raises(ForgettingError):
            fg.worstcase.DualCertificate.from_json(other).verify()


def test_the_script_fails_on_a_changed_digit(proofs, tmp_path) -> None:
    text = proofs["uniform"].to_json()
    at = text.index('"squares"') + 60
    at += next(step for step, letter in enumerate(text[at:]) if letter in "123456789")
    (tmp_path / "changed.json").write_text(text[:at] + str(int(text[at]) % 9 + 1) + text[at + 1 :])
    shown = script(tmp_path / "changed.json")
    assert shown.returncode != 0
    assert "digest" in shown.stderr
    assert script(tmp_path / "changed.json", "-O").returncode != 0  # the checks are no assertions


@pytest.mark.parametrize("name", ["uniform", "many tasks", "all numbers of tasks", "weighted", "shuffled", "convex"])
def test_a_changed_leading_digit_is_noticed_with_a_digest_that_fits(proofs, name) -> None:
    data = proofs[name].data
    check(changed(proofs[name]))
    for block, (_, rows) in enumerate(data["squares"]):
        if rows and max(map(abs, rows[-1])) > 2.0**26:  # the largest square of a block is the last; some prove nothing
            squares = copy.deepcopy([list(pair) for pair in data["squares"]])
            row = squares[block][1][-1]
            at = max(range(len(row)), key=lambda place: abs(row[place]))
            row[at] += (1 if row[at] > 0 else -1) * 10 ** (len(str(abs(row[at]))) - 1)
            with pytest.raises(ValueError, match="prove an upper bound"):
                check(changed(proofs[name], squares=squares))
    upper = Fraction(data["upper"])
    with pytest.raises(ValueError, match="prove an upper bound"):
        check(changed(proofs[name], upper=f"{float(upper) * 0.99:.12f}"))


def test_other_statements_are_not_proved_by_the_same_squares(proofs) -> None:
    proof = proofs["uniform"]
    for fields in (
        {"k": 1},
        {"k": 3},
        {"tasks": 4},
        {"tasks": 5},
        {"tasks": None},
        {"kind": "projections"},
        {"bits": 35},
    ):
        with pytest.raises(ValueError, match="proves nothing"):
            check(changed(proof, **fields))
    assert check(changed(proof, quantity="next_loss")) == check(proof.data)  # the same number for uniform draws


FORGED = [
    {"bits": -1}, {"bits": 0}, {"bits": 36.0}, {"bits": True}, {"bits": None}, {"bits": "36"},
    {"k": 0}, {"k": -1}, {"k": True}, {"k": 2.0}, {"k": "2"}, {"k": None},
    {"tasks": 0}, {"tasks": -3}, {"tasks": 3.0}, {"tasks": True}, {"tasks": "3"},
    {"tasks": None, "law": "shuffles"}, {"tasks": None, "law": {"weights": []}},
    {"tasks": None, "law": {"order": [0, 0]}},
    {"kind": "subspaces"}, {"kind": ""}, {"kind": None}, {"kind": ["convex"]},
    {"quantity": "regret"}, {"quantity": None}, {"quantity": ""},
    {"law": "cyclic"}, {"law": None}, {"law": 3}, {"law": []}, {"law": {}}, {"law": ["weights"]}, {"law": {"p": [1]}},
    {"law": {"weights": ["0", "0", "0"]}}, {"law": {"weights": ["-1", "1", "1"]}}, {"law": {"weights": ["1/2", "1/2"]}},
    {"law": {"weights": ["1/3", "1/3", "1/3", "0"]}}, {"law": {"weights": ["nan", "1", "0"]}},
    {"law": {"weights": [0.5, 0.5, 0.0]}}, {"law": {"weights": ["1e999999999", "0", "0"]}},
    {"law": {"weights": ["1", "0", "0"], "order": [0, 0]}}, {"law": {"weights": ["1/0", "0", "0"]}},
    {"law": {"order": []}}, {"law": {"order": [0]}}, {"law": {"order": [0, 1, 2]}}, {"law": {"order": [0, 3]}},
    {"law": {"order": [-1, -1]}}, {"law": {"order": [0.0, 1]}}, {"law": {"order": "00"}}, {"law": {"order": [True, 0]}},
    {"upper": "nan"}, {"upper": "inf"}, {"upper": 1.0}, {"upper": None}, {"upper": "1e99"}, {"upper": "-1"},
    {"upper": ""}, {"upper": True}, {"upper": float("nan")}, {"upper": float("inf")},
    {"squares": None}, {"squares": [[]]}, {"squares": [[[[0]], [[1.5]]]]},
    {"squares": [[[[0]], [[float("nan")]]]]}, {"squares": [[[[0]], [[float("inf")]]]]}, {"squares": [[[[0]], [["1"]]]]},
    {"squares": [[[[0]], [[True]]]]}, {"squares": [[[[0]], [[1, 2]]]]}, {"squares": [[[[0], [1]], [[1]]]]},
    {"squares": [[[[0.5]], [[1]]]]}, {"squares": [[[["0"]], [[1]]]]}, {"squares": [[[[True]], [[1]]]]},
    {"squares": [[[[1, 2, 3]], [[1]]]]}, {"squares": [[[[1, 2], [3]], [[1, 1]]]]},
    {"squares": [[[[-1, -2, -3]], [[1]]]]}, {"squares": [[[[1, 2, -1]], [[1]]]]},
    {"squares": [[[0], [[1]]]]}, {"squares": [[[[[0]]], [[1]]]]},
    {"normals": [[0, [], None, 2**36]]}, {"normals": None}, {"normals": [[0]]},
]  # fmt: skip


@pytest.mark.parametrize("fields", FORGED, ids=str)
def test_what_is_no_certificate_is_refused(proofs, fields) -> None:
    """Whatever upper bound is claimed, so that the squares would do."""
    fields = {"upper": "999", "squares": []} | fields
    with pytest.raises((ArithmeticError, AttributeError, LookupError, TypeError, ValueError)):
        check(changed(proofs["uniform"], **fields))
    with pytest.raises(InvalidInputError, match="does not prove"):
        fg.worstcase.DualCertificate(changed(proofs["uniform"], **fields)).verify()


@pytest.mark.parametrize("tasks", [1, 2])
def test_words_that_name_more_tasks_than_there_are_are_refused(proofs, tasks) -> None:
    with pytest.raises(ValueError, match="more names than tasks"):
        check(changed(proofs["uniform"], tasks=tasks, upper="999"))


FORGED_NORMALS = [[-1, [], None, 1], [0, [-1], None, 1], [0, [1], [-1], 1], [0, [], None, -1], [0, [], None, 0.5],
                  [0, [], None, float("nan")], [0, [], None, True], [0.0, [], None, 1], [0, [1, 2], None, 1],
                  [0, None, None, 1], [0, [], 5, 1]]  # fmt: skip


@pytest.mark.parametrize("normal", FORGED_NORMALS, ids=str)
def test_a_normal_that_does_not_hold_is_refused(proofs, normal) -> None:
    with pytest.raises((TypeError, ValueError)):
        check(changed(proofs["convex"], normals=[normal], upper="1"))


def test_averages_are_for_tasks_that_are_alike(proofs) -> None:
    with pytest.raises(ValueError, match="bad words"):
        check(changed(proofs["weighted"], squares=[[[[-1, 1], [1], []], [[1, 0, -1]]]], upper="9"))


@pytest.mark.parametrize(
    "missing", ["digest", "k", "tasks", "kind", "quantity", "law", "bits", "squares", "normals", "upper"]
)
def test_a_missing_field_is_refused(proofs, missing) -> None:
    data = dict(proofs["uniform"].data)
    del data[missing]
    if missing != "digest":
        data["digest"] = digest(data)
    with pytest.raises(InvalidInputError, match="does not prove"):
        fg.worstcase.DualCertificate(data).verify()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"format": "another"}', '{"k": 1, "k": 2}', "\xff\xfe", "{" * 999]
)
def test_damaged_files_are_refused(text, tmp_path) -> None:
    (tmp_path / "damaged.json").write_text(text, encoding="latin-1")
    with pytest.raises(ProblemFileError):
        fg.worstcase.DualCertificate.load(tmp_path / "damaged.json")
    assert script(tmp_path / "damaged.json").returncode != 0


def test_files_cut_off_anywhere_are_refused(proofs) -> None:
    text = proofs["convex"].to_json()
    for at in random.Random(1).sample(range(len(text)), 40):
        with pytest.raises(ForgettingError):
            fg.worstcase.DualCertificate.from_json(text[:at]).verify()


# random certificates, multiplied out with the names of all tasks


def in_reflections(words):
    """A combination of words of projections P = (1 + s) / 2, as one of words of reflections s."""
    found = {}
    for word, factor in words.items():
        terms = {(): Fraction(factor)}
        for letter in word:
            after = {}
            for left, value in terms.items():
                for longer in (left, left[:-1] if left[-1:] == (letter,) else (*left, letter)):
                    after[longer] = after.get(longer, 0) + value / 2
            terms = after
        for left, value in terms.items():
            found[left] = found.get(left, 0) + value
    return found


def multiplied_out(data, runs):
    """The constant plus the absolute values of all other coefficients, without averages and tricks."""
    T, k, kind, alike = data["tasks"], data["k"], data["kind"], isinstance(data["law"], str)
    total = {}

    def add_product(left, right, factor):
        word = []
        for letter in (*left, *right[::-1]):
            if word and word[-1] == letter:
                word = word[:-1] if kind == "reflections" else word
            else:
                word.append(letter)
        ways = permutations(range(T)) if alike else [range(T)]
        name = min(tuple(way[letter] for letter in one) for way in ways for one in (word, word[::-1]))
        total[name] = total.get(name, 0) + factor

    for order, weight in runs:
        word = order[:k]
        asked = {"loss": range(T), "next_loss": order[k:], "forgetting": word}[data["quantity"]]
        for m in asked:
            lost = {word: 1, (*word, m): -1}
            lost = in_reflections(lost) if kind == "reflections" else lost
            for u, a in lost.items():
                for v, b in lost.items():
                    add_product(u, v, a * b * weight / (2 * len(asked)))
    for words, rows in data["squares"]:
        spread = [explicit(word, T) for word in words]
        for row in rows:
            for x, left in zip(row, spread, strict=True):
                for y, right in zip(row, spread, strict=True):
                    for u, v in product(left, right):
                        add_product(u, v, Fraction(x * y, len(left) * len(right) * 4 ** data["bits"]))
    return total.pop((), 0) + sum(map(abs, total.values()))


def explicit(word, T):
    """All words that an average stands for, with equal shares."""
    averaged = sorted({letter for letter in word if letter < 0})
    free = [task for task in range(1, T) if task not in word]
    return [tuple(dict(zip(averaged, way, strict=True)).get(letter, letter) for letter in word)
            for way in permutations(free, len(averaged))]  # fmt: skip


def exact_runs(law, T, k):
    """All runs with their exact probabilities."""
    if law == "shuffles":
        passes = list(permutations(range(T)))
        count = -(-k // T)
        return [(sum(chosen, ())[:k], Fraction(1, len(passes) ** count)) for chosen in product(passes, repeat=count)]
    if law == "uniform":
        return [(order, Fraction(1, T**k)) for order in product(range(T), repeat=k)]
    if "order" in law:
        return [(tuple(law["order"][:k]), Fraction(1))]
    weights = list(map(Fraction, law["weights"]))
    return [(order, prod(weights[task] for task in order)) for order in product(range(T), repeat=k)]


@pytest.mark.parametrize("kind", ["projections", "reflections"])
@pytest.mark.parametrize("law", ["uniform", "shuffles", "weights", "order"])
@pytest.mark.parametrize("quantity", ["loss", "forgetting", "next_loss"])
def test_random_squares_prove_what_multiplying_out_all_names_proves(kind, law, quantity) -> None:
    rng = np.random.default_rng(0)
    for T, k in [(4, 1), (4, 2), (3, 3), (2, 4)]:
        alike = law in ("uniform", "shuffles")
        letters = {4: [-2, -1, 0, 1], 3: [-1, 0, 1], 2: [-1, 0]}[T] if alike else range(T)
        blocks = []
        for _ in range(2):
            words = [[letter for letter, _ in groupby(rng.choice(letters, rng.integers(0, 4)).tolist())] for _ in "abc"]
            blocks.append([words, [[int(value) for value in rng.integers(-3, 4, 3)] for _ in range(2)]])
        steps = k + (quantity == "next_loss")
        said = {
            "weights": {"weights": {4: ["1/2", "1/3", "1/6", "0"], 3: ["1/2", "1/3", "1/6"], 2: ["1/5", "4/5"]}[T]},
            "order": {"order": [int(task) for task in rng.integers(0, T, steps)]},
        }.get(law, law)
        data = {"format": "forgetting worst case 1", "kind": kind, "quantity": quantity, "k": k, "tasks": T,
                "law": said, "bits": 2, "squares": blocks, "normals": [], "upper": "999"}  # fmt: skip
        assert check(data | {"digest": digest(data)}) == multiplied_out(data, exact_runs(said, T, steps))


def test_a_certificate_replaces_no_other_file_and_names_a_file_that_is_none(tmp_path):
    proof, mine = fg.worst_case(2, 1).certificate, tmp_path / "mine.json"
    mine.write_text('{"x": 1}')
    with pytest.raises(ProblemFileError, match=r"mine\.json exists, was not written by forgetting, and is kept"):
        proof.save(mine)
    assert mine.read_text() == '{"x": 1}'
    with pytest.raises(ProblemFileError, match=r"mine\.json: not a certificate of a worst case"):
        DualCertificate.load(mine)
    with pytest.raises(ProblemFileError, match="no such file"):
        DualCertificate.load(tmp_path / "nowhere.json")
    proof.save(tmp_path / "proof.json")
    proof.save(tmp_path / "proof.json")  # a certificate may be replaced
    assert DualCertificate.load(tmp_path / "proof.json").verify() == proof.verify()


LONG = {
    "very many bits": {"bits": 10**9},
    "very many steps": {"k": 3306252529},
    "more steps than the words have": {"k": 9999},
    "very many runs": {"k": 60, "tasks": 30, "law": "shuffles"},
    "very many tasks in an order": {"tasks": 10**9, "law": {"order": [0]}},
    "a long order": {"k": 9999, "tasks": 9999, "law": {"order": list(range(9999))}},
    "very many averages": {"k": 40, "tasks": 10**6, "squares": [[[[*range(-29, 0)], [*range(40)]], [[1, 1]]]]},
    "long words": {"k": 9999, "squares": [[[[0, 1] * 4000] * 9, [[1] * 9]]]},
    "very many words": {"squares": [[[[]] * 9999, []]]},
    "large numbers": {"squares": [[[[0], [1]], [[10**4000, 1]]]]},
    "weights of many digits": {"k": 30, "law": {"weights": ["1/" + "7" * 900, "7" * 899 + "6/" + "7" * 900]}},
    "a weight of a million digits": {"law": {"weights": ["1/" + "3" * 10**6, "1"]}},
    "an upper bound of a million digits": {"upper": "9" * 10**6},
    "very many tasks": {"tasks": 10**4000},
    "letters of many digits": {"squares": [[[[10**1000]], [[1]]]]},
    "deep lists": {"squares": [[[[[[[[0]]]]]], [[1]]]]},
}


@pytest.mark.parametrize("name", LONG)
def test_what_takes_too_long_to_multiply_out_is_refused(name) -> None:
    forged = changed(fg.worst_case(2, 1).certificate, **LONG[name])
    with pytest.raises(InvalidInputError, match="does not prove its upper bound"):
        DualCertificate(forged).verify()


@pytest.mark.parametrize("fields", [{"upper": "x"}, {"upper": 1}, {"upper": None}, {"squares": 3}, {"squares": [[1]]}])
def test_a_file_without_an_upper_bound_or_squares_is_not_read(fields) -> None:
    forged = changed(fg.worst_case(2, 1).certificate, **fields)
    with pytest.raises(ProblemFileError, match=r"upper bound|squares"):
        DualCertificate.from_json(json.dumps(forged))
