"""forgetting worst-case, and forgetting frontier: show, verify and improve."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import forgetting as fg
from forgetting.tasks.worst_tasks import FOLDER
from forgetting.worstcase import Entry, check_certificate

COMMANDS = ("show", "verify", "improve")


def fits(text: str, width: int = 80) -> bool:
    return all(len(line) <= width for line in text.splitlines()) and "\x1b" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(inside, command):
    done = inside("frontier", command, "--help")
    assert done.code == 0
    assert fits(done.out)
    assert f"Examples:\n    forgetting frontier {command}" in done.out
    assert "--json" in done.out


def test_the_group_is_listed_and_explains_itself(inside):
    assert "\n  frontier " in inside("--help").out
    done = inside("frontier")
    assert done.out == inside("frontier", "--help").out
    assert all(f"\n  {command} " in done.out for command in COMMANDS)


# -------------------------------------------------------------------------------------------------------- worst-case


def test_a_worst_case_has_its_value_a_proof_and_tasks(inside, tmp_path):
    done = inside("worst-case", "3", "2", "--certificate", "proof.json", "--tasks", "worst.npz")
    assert (done.code, done.err) == (0, "")
    assert fits(done.out)
    assert "0.09104395" in done.out
    tasks = fg.RegressionTasks.load(tmp_path / "worst.npz")
    assert float(fg.expect(tasks, "with-replacement", 2).loss) == pytest.approx(0.0910439, abs=1e-7)
    script = Path(check_certificate.__file__)
    checked = subprocess.run(
        [sys.executable, script, tmp_path / "proof.json"], capture_output=True, text=True, check=False
    )
    assert checked.stdout.startswith("proved: the expected loss after k = 2 steps is at most 0.0910439")
    again = inside("worst-case", "3", "2", "--certificate", "proof.json")
    assert again.code == 2
    assert "proof.json exists and is kept" in again.err
    assert inside("worst-case", "3", "2", "--certificate", "proof.json", "--force").code == 0


def test_a_worst_case_over_any_number_of_tasks_for_machines(inside):
    data = json.loads(inside("worst-case", "inf", "1", "--json").out)
    assert data["meta"]["T"] is None
    assert data["meta"]["upper"] == pytest.approx(3**-1.5, abs=1e-6)
    assert data["meta"]["lower"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("3", "0"), "k must be at least 1"),
        (("x", "2"), "x"),
        (("3", "2", "--quantity", "regret"), "no quantity 'regret'"),
        (("3", "2", "--certificate", "proof.txt"), "proof.txt: the name must end in .json"),
        (("inf", "2", "--tasks", "worst.npz"), "ask for a finite T"),
    ],
)
def test_worst_cases_without_sense_are_refused(inside, tmp_path, words, message):
    done = inside("worst-case", *words)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------------------- frontier


def test_show_has_a_row_for_each_k_and_a_picture(inside, tmp_path):
    done = inside("frontier", "show", "--out", "frontier.png")
    assert (done.code, done.err) == (0, "")
    assert fits(done.out)
    assert "The exponent is 1" in " ".join(done.out.split())
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")
    rows = {row.k: row for row in fg.worstcase.frontier("loss").envelope}
    lines = {line.split()[1]: line.split() for line in done.out.splitlines() if line[:1].isdigit()}
    assert set(lines) >= {str(k) for k in rows}
    assert float(lines["3"][3]) == pytest.approx(3 * rows[3].value, rel=1e-3)


def test_show_of_one_number_of_tasks_for_machines(inside):
    data = json.loads(inside("frontier", "show", "--T", "2", "--quantity", "forgetting", "--json").out)
    table = data["sections"][0]["items"][0]
    assert {row[table["columns"].index("T")] for row in table["rows"]} == {2}
    done = inside("frontier", "show", "--k", "999")
    assert done.code == 2
    assert "no entry on loss" in done.err


def test_verify_says_what_holds_and_what_is_damaged(inside, tmp_path):
    good = FOLDER / "loss-T3-k2.json"
    done = inside("frontier", "verify", str(good))
    assert (done.code, done.err) == (0, "")
    assert "1 of 1 entries hold; 1 of them have a proved upper bound" in done.out
    done = inside("frontier", "verify", str(FOLDER / "loss-Tinf-k4.json"))
    assert "0 of them have a proved upper bound" in done.out
    assert "was not checked: loss-Tinf-k4.json" in " ".join(done.out.split())
    wrong = tmp_path / "wrong.json"
    wrong.write_bytes(good.read_bytes().replace(b'"k":2', b'"k":3'))
    done = inside("frontier", "verify", str(wrong), str(good), str(tmp_path / "none.json"))
    assert done.code == 3
    assert "1 of 3 entries hold" in done.out
    assert "wrong.json: damaged entry of worst tasks" in done.out
    assert "none.json: no such file" in done.out
    data = json.loads(inside("frontier", "verify", str(wrong), "--json").out)
    assert (data["verified"], data["wrong"]) == (0, 1)


def test_improve_writes_an_entry_only_if_it_is_better(inside, tmp_path):
    search = ("frontier", "improve", "--T", "3", "--d", "3", "--k", "21", "--restarts", "4", "--steps", "100")
    done = inside(*search)
    assert (done.code, done.err) == (0, "")
    assert "wrote frontier/loss-T3-k21.json" in done.out
    entry = Entry.read(tmp_path / "frontier" / "loss-T3-k21.json")
    assert entry.verify().value > 1.01 * fg.worstcase.frontier("loss").best(T=2, k=20).value * 20 / 21
    assert "no file was written" in inside(*search).out
    assert "1 of them your own" in " ".join(inside("frontier", "show", "--k", "21").out.split())
    entry.tasks.save(tmp_path / "mine.npz")
    done = inside("frontier", "improve", "--tasks", "mine.npz", "--k", "21", "--json")
    assert json.loads(done.out)["better"] is False


def test_improve_with_tasks_of_the_user(inside, tmp_path):
    fg.families.two_lines(0.5).save(tmp_path / "mine.npz")
    assert "known is" in inside("frontier", "improve", "--tasks", "mine.npz", "--k", "3").out
    for words in (("--k", "3"), ("--k", "3", "--T", "3", "--d", "3", "--tasks", "mine.npz")):
        done = inside("frontier", "improve", *words)
        assert done.code == 2
        assert "--tasks" in done.err


def test_a_damaged_entry_in_the_folder_of_the_user_is_an_error(inside, tmp_path):
    entry = Entry.read(FOLDER / "loss-T3-k2.json")
    (tmp_path / "frontier").mkdir()
    replace(entry, value=0.08, proof=None).save(tmp_path / "frontier" / "loss-T3-k2.json")
    done = inside("frontier", "show")
    assert done.code == 2
    assert "the value is recorded as 0.08" in done.err
