"""The store: damage, other programs, full disks, read-only folders, several users; never a wrong row."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from forgetting.errors import ForgettingError, ProblemFileError
from forgetting.files import store as owners
from forgetting.files.store import PROTECTED, Plan, Store, _digest
from forgetting.studies import Study

ROWS = [{"x": number / 7, "name": f"cell {number}"} for number in range(30)]


def plans(count):
    return [
        Plan(f"key{number}", number, "module:function", json.dumps({"T": number}), number) for number in range(count)
    ]


def filled(path, count=30):
    with Store(path) as store:
        store.plan(plans(count))
        for number in range(count):
            store.claim(f"key{number}")
            if number % 7 == 3:
                store.finish(f"key{number}", error=f"ValueError: {number}", trace="here", seconds=0.5, version="1")
            else:
                store.finish(f"key{number}", rows=json.dumps([ROWS[number]]), seconds=0.5, version="1")
    return path


def told(path):
    """What a store says of its finished cells."""
    with Store(path) as store:
        entries = [entry for entry in store.entries() if entry.state in ("done", "failed")]
        return {(e.key, e.place, e.function, str(e.cell), e.seed, str(e.rows), e.error, e.seconds) for e in entries}


# ------------------------------------------------------------------------------------------------------------- damage


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return filled(tmp_path_factory.mktemp("store") / "sound.db")


def check_damage(sound, path, change):
    """A store with changed bytes raises an error of this library, or says what the sound one says, or less of it."""
    body = bytearray(sound.read_bytes())
    change(body)
    path.write_bytes(body)
    try:
        said = told(path)
    except ForgettingError:
        return "error"
    finally:
        for ending in ("-wal", "-shm", "-journal"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
    before = told(sound)
    assert said <= before, said - before
    return "same" if said == before else "fewer"


def test_changed_byte_anywhere_is_an_error_or_changes_no_row(sound, tmp_path):
    size = sound.stat().st_size
    seen = {"error": 0, "same": 0, "fewer": 0}
    places = [*range(0, 200, 3), *range(200, size, max(1, size // 300))]
    for place in places:

        def flip(body, place=place):
            body[place] ^= 1 + place % 255

        seen[check_damage(sound, tmp_path / "s.db", flip)] += 1
    assert seen["error"] > 50
    assert seen["same"] > 50  # unused parts of pages, times, owners


@pytest.mark.slow
def test_every_changed_byte(sound, tmp_path):
    for place in range(sound.stat().st_size):

        def flip(body, place=place):
            body[place] ^= 1 << place % 8

        check_damage(sound, tmp_path / "s.db", flip)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_truncated_store_is_an_error(sound, tmp_path, keep):
    assert (
        check_damage(sound, tmp_path / "s.db", lambda body: body.__delitem__(slice(int(len(body) * keep), None)))
        == "error"
    )


def test_digit_changed_by_another_program_is_found(sound, tmp_path):
    path = shutil.copy(sound, tmp_path / "s.db")
    with sqlite3.connect(path) as base:
        base.execute("UPDATE cells SET rows = replace(rows, '0.14', '0.15') WHERE key = 'key1'")
    base.close()
    with pytest.raises(ProblemFileError, match="the digest of cell 1 is wrong"):
        told(path)


def test_odd_state_is_found(sound, tmp_path):
    path = shutil.copy(sound, tmp_path / "s.db")
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA ignore_check_constraints = 1")
        base.execute("UPDATE cells SET state = 'dose' WHERE key = 'key1'")
    base.close()
    with Store(path) as store, pytest.raises(ProblemFileError, match="state 'dose'"):
        store.states()


# ------------------------------------------------------------------------------------------- other files, other users


def test_database_of_another_program_is_kept(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE cells (precious TEXT)")
    base.close()
    before = path.read_bytes()
    with pytest.raises(ProblemFileError, match="another program"):
        Store(path)
    assert path.read_bytes() == before


def test_file_that_is_no_database_is_kept(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes, which are precious\n" * 100)
    with pytest.raises(ProblemFileError, match="not a store of this library, and is kept"):
        Store(path)
    assert path.read_text().startswith("my notes")


def test_folder_as_a_store(tmp_path):
    with pytest.raises(ProblemFileError, match="cannot be used as a store"):
        Store(tmp_path)


def test_nul_in_the_name(tmp_path):
    with pytest.raises(ProblemFileError, match="cannot be used"):
        Store(tmp_path / "a\0b.db")


def test_store_without_permission_to_write_can_be_read(sound, tmp_path, monkeypatch):
    path = Path(shutil.copy(sound, tmp_path / "s.db"))
    before, access = told(sound), os.access
    monkeypatch.setattr(os, "access", lambda name, mode: mode != os.W_OK and access(name, mode))  # also for root
    with Store(path) as store:
        assert len(store) == len([1 for entry in before if entry[6] is None])
        with pytest.raises(ProblemFileError, match="cannot be written"):
            store.finish("key0", rows="[]")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["s.db"]


FULL = """
import resource, sys
from forgetting.errors import ProblemFileError
from forgetting.studies import Study

def cell(a):
    return {"text": "x" * 10000}

study = Study([{"a": a} for a in range(100)], sys.argv[1], function=cell)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
for jobs in (1,):
    try:
        study.run(jobs=jobs, progress=False)
    except ProblemFileError as error:
        print(error)
    else:
        sys.exit("no error")
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
kept = study.status.done
study.run(progress=False)
print(kept, study.status.done)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs limits of files")
def test_full_disk_is_an_error_and_finished_cells_are_kept(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "s.db")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    *messages, numbers = done.stdout.splitlines()
    assert all("all finished cells are kept" in message for message in messages)
    kept, finished = map(int, numbers.split())
    assert 0 < kept < 100
    assert finished == 100


def test_many_processes_may_create_one_store(tmp_path):
    code = "import sys; from pathlib import Path; from forgetting.files.store import *; sys.stdin.readline(); " + (
        "s = Store(Path(sys.argv[1])); s.plan([Plan(str(i), i, 'f', '{}', 0) for i in range(50)]); "
        "print(sum(s.claim(str(i)) for i in range(50)), flush=True); sys.stdin.readline()"
    )
    several = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "s.db")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
        )
        for _ in range(4)
    ]  # fmt: skip
    for process in several:
        process.stdin.write("go\n")
    counts = [int(process.stdout.readline() or -1) for process in several]
    errors = [process.communicate("end\n", timeout=60)[1] for process in several]
    assert errors == [""] * 4
    assert sum(counts) == 50  # every cell went to one of them


# ------------------------------------------------------------------------------------------------------------- owners


def test_owner_of_the_same_process_is_alive_until_its_store_is_closed(tmp_path):
    first, second = Store(tmp_path / "s.db"), Store(tmp_path / "s.db")
    first.plan(plans(2))
    assert first.claim("key0")
    second.release()  # its own cells only
    assert not second.claim("key0")
    assert second.states() == {"key0": "running", "key1": "waiting"}
    first.close()
    assert second.claim("key0")
    second.close()


def test_cells_of_another_machine_are_free_after_ten_minutes_of_silence(tmp_path, monkeypatch):
    with Store(tmp_path / "s.db") as here, Store(tmp_path / "s.db") as there:
        there.me.name = "elsewhere 12 345 0"
        here.plan(plans(1))
        there.claim("key0")
        there.beat()
        assert not here.claim("key0")
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + owners.LEASE + 1)
        assert here.states() == {"key0": "waiting"}
        there.beat()
        assert not here.claim("key0")
        monkeypatch.setattr(time, "time", lambda: now + 3 * owners.LEASE)
        assert here.claim("key0")


def test_number_of_a_dead_process_that_another_has_now():
    born = owners._born(os.getppid())
    name = owners.Owner().name.split()[0]
    assert owners.is_alive(f"{name} {os.getppid()} {born} 0")
    if born:
        assert not owners.is_alive(f"{name} {os.getppid()} {int(born) - 1} 0")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_store_is_not_used_in_a_fork(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from forgetting.files.store import *\n"
        "s = Store(Path(sys.argv[1]))\n"
        "pid = os.fork()\n"
        "try: s.counts(); code = 0\n"
        "except ValueError as e: code = 7 if 'in a fork' in str(e) else 1\n"
        "if pid == 0: os._exit(code)\n"
        "sys.exit(code or os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "s.db")]).returncode == 7


def test_cell_that_is_gone_is_an_error(tmp_path):
    with Store(tmp_path / "s.db") as store, pytest.raises(ProblemFileError, match="is gone"):
        store.finish("key0", rows="[]")


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be removed")
def test_file_that_is_removed_or_replaced_while_in_use_is_an_error(tmp_path):
    path = tmp_path / "s.db"
    for replaced in (False, True):
        with Store(path) as store:
            store.plan(plans(1))
            path.rename(tmp_path / f"moved{replaced}.db")
            if replaced:
                path.touch()
            with pytest.raises(ProblemFileError, match="removed or replaced"):
                store.finish("key0", rows="[]")
        for file in tmp_path.glob("s.db*"):
            file.unlink()


def test_interrupt_within_a_transaction_leaves_the_store_usable():
    with Store(None) as store:
        store.plan(plans(1))
        store._base.execute("BEGIN IMMEDIATE")  # where an interrupt may come before the block begins
        store.release()
        assert store.claim("key0")
        with suppress(KeyboardInterrupt), store._transaction():
            store._base.execute("DELETE FROM cells")
            raise KeyboardInterrupt
        assert store.counts() == {"running": 1}


def test_threads_share_a_store(tmp_path):
    taken = []
    with Store(tmp_path / "s.db") as store:
        store.plan(plans(100))
        threads = [
            threading.Thread(target=lambda: taken.extend(i for i in range(100) if store.claim(f"key{i}")))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(taken) == list(range(100))


def test_errors_of_any_text_are_kept():
    with Store(None) as store:
        store.plan(plans(1))
        store.finish("key0", error="lone \ud800, null \0, " + "long " * 100_000, trace="\udfff")
        (entry,) = store.entries()
        assert entry.error.startswith("lone \\ud800, null \\x00, long")
        assert len(entry.error) < 30_000
        assert entry.trace == "\\udfff"


def test_retry_leaves_failures_of_other_studies(tmp_path):
    def fails(a):
        raise ValueError(a)

    one, two = (Study([{"a": a}], tmp_path / "s.db", function=fails).run(progress=False) for a in (1, 2))
    two.run(progress=False, retry=True)
    assert (one.status.failed, two.status.failed) == (1, 1)
    assert one.failures == {"a=1": "ValueError: 1"}


def test_failed_cells_of_equal_values_are_all_told_when_a_store_is_opened(tmp_path):
    with Store(tmp_path / "s.db") as store:
        store.plan([Plan(key * 64, 0, "mine:cell", json.dumps({"T": 1}), 7) for key in "abc"])
        for key in "abc":
            store.claim(key * 64)
            store.finish(key * 64, error=f"ValueError: {key}", trace="here", seconds=0.5, version="1")
    opened = Study.open(tmp_path / "s.db")
    assert opened.status.failed == len(opened.failures) == 3
    assert sorted(opened.failures.values()) == ["ValueError: a", "ValueError: b", "ValueError: c"]
    assert sum(words == "T=1" for words in opened.failures) == 1


FORGED = ["1", "[1]", '["loss"]', "null", '"x"', "[null]", "[[1]]", "{}"]


@pytest.mark.parametrize("rows", FORGED)
def test_forged_rows_that_are_no_dictionaries_are_found(sound, tmp_path, rows):
    path = Path(shutil.copy(sound, tmp_path / "s.db"))
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.create_function("digest", 11, _digest)
        base.execute("UPDATE cells SET rows = ? WHERE state = 'done'", (rows,))
        base.execute(f"UPDATE cells SET digest = digest({PROTECTED})")
    with pytest.raises(ProblemFileError, match=r"s\.db: a damaged store.*cell 0 has values of the wrong type"):
        Study.open(path)


def test_a_key_that_the_table_lost_but_the_index_knows_is_found(tmp_path):
    path = tmp_path / "s.db"
    study = Study([{"x": -1.0}, {"x": -2.0}], path, function=_absolute)
    study.run(progress=False)
    key, content, rows = study.cells[0].key.encode(), path.read_bytes(), study.rows()
    first = content.index(key)
    said = []
    for place in (first, content.index(key, first + 1)):  # in the table, and in its index
        path.write_bytes(content[:place] + b"z" + content[place + 1 :])
        try:
            assert study.run(progress=False).rows() == rows
        except ProblemFileError as error:
            said.append(str(error))
    assert len(said) == 1
    assert f"s.db: a damaged store; remove the file to begin again (the cell with the key {key.decode()}" in said[0]


def _absolute(x):
    return abs(x)


@pytest.mark.parametrize("content", [b"", b"database"])
def test_what_only_looks_at_a_file_leaves_it_as_it_is(content, tmp_path, monkeypatch):
    monkeypatch.setattr("forgetting.files.store.CREATION", 0.0)
    path = tmp_path / "empty.db"
    path.touch()
    if content:  # an empty database of SQLite
        with closing(sqlite3.connect(path)) as base:
            base.execute("VACUUM")
    before = path.read_bytes()
    with pytest.raises(ProblemFileError, match=r"empty\.db: empty, and no store of a study; .* left as it is"):
        Study.open(path)
    study = Study([{"x": -1.0}], path, function=_absolute)
    assert (str(study.status)[:6], study.rows(), study.forget().status.waiting) == ("0 of 1", [], 1)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["empty.db"]
    assert Study([{"x": -1.0}], path, function=_absolute).run(progress=False).results() == [{"value": 1.0}]


def test_looking_at_a_store_changes_no_byte_of_it(sound, tmp_path):
    path = Path(shutil.copy(sound, tmp_path / "s.db"))
    study = Study.open(path)
    assert str(study.status).startswith("30 of 30")
    assert len(study.rows()) == 30
    assert path.read_bytes() == sound.read_bytes()
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.db"]
