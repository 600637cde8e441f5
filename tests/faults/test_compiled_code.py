"""Compiled code works wherever it runs: without a place for its files, with damaged ones, checked, and not compiled."""

import errno
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import pytest

import forgetting
from forgetting.compute import compiling as _compile
from forgetting.errors import NoCacheWarning

PACKAGE = Path(forgetting.__file__).parent
REMEDY = "set NUMBA_CACHE_DIR to a folder that can be written"
KERNEL = """
import sys
from forgetting.compute.compiling import compiled

@compiled
def third(x):
    return x[2]

@compiled
def triple(x):
    return 3 * x
"""
TRY = "import kernel; print(kernel.triple(2.0), sum(kernel.triple.stats.cache_hits.values()))"


def start(*arguments, folder, package=PACKAGE, **environment):
    """A process of its own with no settings of numba but these, and modules from `folder`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    paths = [str(folder), str(package.parent), os.environ.get("PYTHONPATH", "")]
    environment = kept | {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"} | environment
    command, pipe = [sys.executable, *arguments], subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def python(*arguments, **more):
    """The same, when it has ended."""
    process = start(*arguments, **more)
    out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def triple(x):
    return 3.0 * x


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where this process keeps compiled code meanwhile."""
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(_compile.Files, "warned", False)
    (found,) = _compile.folders()
    return found


@pytest.fixture
def kernel(tmp_path):
    """A folder with a module of two small kernels."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    return tmp_path


@pytest.fixture(scope="session")
def warm(tmp_path_factory):
    """A folder for NUMBA_CACHE_DIR that has all that `doctor` needs."""
    home = tmp_path_factory.mktemp("warm")
    (home / _compile.NAME).mkdir()
    for known in _compile.folders():  # which saves time, if they hold anything
        for file in known.glob("forgetting.*.nbc"):
            shutil.copy(file, home / _compile.NAME)
    done = python("-m", "forgetting", "doctor", folder=home, NUMBA_CACHE_DIR=str(home))
    assert done.returncode == 0, done.stderr
    return home


def compile_and_call():
    """What a fresh process would get, and whether it came from a file."""
    made = _compile.compiled(triple)
    return made(2.0), sum(made.stats.cache_hits.values())


def flipped(content, place):
    changed = bytearray(content)
    changed[place] ^= 16
    return bytes(changed)


def test_what_was_compiled_is_used_again(folder):
    assert [compile_and_call() for _ in range(2)] == [(6.0, 0), (6.0, 1)]
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: bytes(len(content)),
        lambda content: content[::-1],
        lambda content: content + b"more",
        lambda content: flipped(content, 3),
        lambda content: flipped(content, 40),
        lambda content: flipped(content, len(content) // 2),
        lambda content: flipped(content, -1),
    ],
)
def test_a_damaged_file_is_compiled_again_and_replaced(damage, folder):
    compile_and_call()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert compile_and_call() == (6.0, 0)
    assert list(folder.iterdir()) == [file]
    assert compile_and_call() == (6.0, 1)


def test_a_folder_in_the_place_of_a_file_is_no_obstacle(folder):
    compile_and_call()
    (file,) = folder.iterdir()
    file.unlink()
    (file / "inside").mkdir(parents=True)
    with pytest.warns(NoCacheWarning, match="Is a directory"):
        assert compile_and_call() == (6.0, 0)


@pytest.mark.parametrize("code", ["ENOSPC", "EROFS", "EACCES", "EDQUOT", "EIO"])
def test_no_error_while_saving_stops_a_computation(code, folder, monkeypatch):
    def fail(*_, **__):
        raise OSError(getattr(errno, code), os.strerror(getattr(errno, code)))

    for step in ("mkdir", "write_bytes", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(_compile.Files, "warned", False)
            patch.setattr(Path, step, fail)
            with pytest.warns(NoCacheWarning) as told:
                assert [compile_and_call() for _ in range(2)] == [(6.0, 0), (6.0, 0)]
        assert len(told) == 1
        assert os.strerror(getattr(errno, code)) in str(told[0].message)
        assert str(told[0].message).endswith(REMEDY)
        assert not folder.exists() or not list(folder.iterdir())


def test_the_next_folder_is_taken_where_the_first_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    places = [tmp_path / "file" / "x", tmp_path / "second"]
    monkeypatch.setattr(_compile, "folders", lambda: places)
    assert [compile_and_call() for _ in range(2)] == [(6.0, 0), (6.0, 1)]
    assert _compile.kept_in() == f"{places[1]}, writable"
    assert len(list(places[1].iterdir())) == 1


def test_without_settings_code_is_kept_in_the_package_or_with_the_user(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    package, user = _compile.folders()
    assert package == PACKAGE / "__pycache__"
    if sys.platform == "linux":
        assert user.parent == Path("/somewhere/numba")
        monkeypatch.setenv("XDG_CACHE_HOME", "~/unknown")
        assert _compile.folders() == [package]


def test_code_is_compiled_again_if_what_it_calls_or_uses_has_changed(tmp_path):
    (tmp_path / "parts.py").write_text(
        "from forgetting.compute.compiling import inlined\n@inlined\ndef part(x):\n    return 3.0 * x\nFACTOR = 1.0\n"
    )
    (tmp_path / "whole.py").write_text(
        "from parts import part, FACTOR\nfrom forgetting.compute.compiling import compiled\n"
        "@compiled\ndef whole(x):\n    return FACTOR * part(x)\n"
    )
    code = "import whole; print(whole.whole(2.0), sum(whole.whole.stats.cache_hits.values()))"
    for expected in ("6.0 0", "6.0 1", "8.0 0", "16.0 0"):
        if expected in ("8.0 0", "16.0 0"):
            old = {"8.0 0": "3.0", "16.0 0": "FACTOR = 1.0"}[expected]
            text = (tmp_path / "parts.py").read_text()
            (tmp_path / "parts.py").write_text(text.replace(old, {"3.0": "4.0"}.get(old, "FACTOR = 2.0")))
        done = python("-B", "-c", code, folder=tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        assert done.stdout.strip() == expected, done.stderr


def test_checked_and_unchecked_code_are_kept_apart(kernel):
    code = "import kernel, numpy as np; kernel.third(np.zeros(2))"
    cache = str(kernel / "cache")
    assert python("-c", code, folder=kernel, NUMBA_CACHE_DIR=cache).returncode == 0
    done = python("-c", code, folder=kernel, NUMBA_CACHE_DIR=cache, NUMBA_BOUNDSCHECK="1")
    assert "IndexError" in done.stderr
    assert len(list(Path(cache).glob("*/*.nbc"))) == 2


def test_processes_that_compile_at_the_same_time_leave_whole_files(kernel):
    code = f"import kernel; kernel.triple(2); {TRY}"
    together = [start("-c", code, folder=kernel, NUMBA_CACHE_DIR=str(kernel / "cache")) for _ in range(3)]
    assert [process.communicate()[0].split()[0] for process in together] == ["6.0"] * 3
    assert len(list((kernel / "cache").glob("*/*"))) == 2  # and nothing half-written
    done = python("-c", TRY, folder=kernel, NUMBA_CACHE_DIR=str(kernel / "cache"))
    assert done.stdout.split() == ["6.0", "1"]


def test_writers_of_one_file_never_mix(tmp_path):
    contents = [bytes([number]) * 100_000 for number in range(4)]

    def write(content):
        for _ in range(50):
            _compile._write(tmp_path / "file", content)
            assert (tmp_path / "file").read_bytes() in contents

    with ThreadPoolExecutor(len(contents)) as pool:
        list(pool.map(write, contents))
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


@pytest.fixture(params=["a folder below a file", "a package that cannot be written, and no home"])
def nowhere(request, kernel):
    """How to start a process that can keep nothing, also for root."""
    if request.param.startswith("a folder"):
        return {"folder": kernel, "NUMBA_CACHE_DIR": str(kernel / "kernel.py" / "cache")}
    package = kernel / "installed" / "forgetting"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__pycache__").write_text("no folder")
    return {"folder": kernel, "package": package, "HOME": "/dev/null/x", "XDG_CACHE_HOME": "/dev/null/x"}


def test_everything_works_where_nothing_can_be_kept_and_one_line_says_so(nowhere):
    done = python("-c", f"import kernel; kernel.triple(2); {TRY}", **nowhere)
    assert done.stdout.split() == ["6.0", "0"], done.stderr
    assert done.stderr.count("NoCacheWarning: compiled code cannot be kept") == 1
    assert REMEDY in done.stderr


def test_the_command_line_works_where_nothing_can_be_kept(kernel):
    done = python("-m", "forgetting", "run", "--k", "5", folder=kernel, NUMBA_CACHE_DIR="/dev/null/x")
    assert done.returncode == 0
    assert "completed 5 steps" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: compiled code cannot be kept (/dev/null/x")
    assert line.endswith(REMEDY)


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
"""


def test_a_full_disk_stops_nothing(kernel):
    pytest.importorskip("resource")
    done = python("-c", f"{LIMITED}\n{TRY}", folder=kernel, NUMBA_CACHE_DIR=str(kernel / "cache"))
    assert done.stdout.split() == ["6.0", "0"], done.stderr
    assert done.stderr.count("NoCacheWarning: compiled code cannot be kept") == 1
    assert not list((kernel / "cache").glob("*/*"))


def lines(done):
    """What `doctor --json` says of the machine and of the tests."""
    _, machine, tests = json.loads(done.stdout)["sections"][0]["items"]
    return dict(machine["rows"]), {name: (error, verdict) for name, error, verdict in tests["rows"]}


def test_doctor_answers_on_a_full_disk(warm):
    pytest.importorskip("resource")
    code = f"{LIMITED}\nfrom forgetting.cli import main\nmain(['doctor', '--json'])"
    done = python("-c", code, folder=warm, NUMBA_CACHE_DIR=str(warm))
    assert done.returncode == 0, done.stderr
    assert lines(done)[0]["compiled code"].startswith(f"not kept ({warm}")


def test_doctor_answers_with_damaged_files_and_replaces_them(warm, tmp_path):
    home = tmp_path / "home"
    shutil.copytree(warm, home)
    files = list(home.glob("*/forgetting.compute.run_kernels.advance-*.nbc"))  # one of them is loaded
    damaged = [flipped(file.read_bytes(), -999) for file in files]
    for file, content in zip(files, damaged, strict=True):
        file.write_bytes(content)
    done = python("-m", "forgetting", "doctor", "--json", folder=tmp_path, NUMBA_CACHE_DIR=str(home))
    assert (done.returncode, done.stderr) == (0, "")
    assert lines(done)[0]["compiled code"].endswith("writable")
    assert sum(file.read_bytes() != content for file, content in zip(files, damaged, strict=True)) >= 1


@pytest.fixture
def doctor(capsys):
    """Ask it within this process: exit code, machine, tests."""
    from forgetting.cli import run_app

    def ask():
        capsys.readouterr()
        code = run_app(["doctor", "--json"])
        _, machine, tests = json.loads(capsys.readouterr().out)["sections"][0]["items"]
        return code, dict(machine["rows"]), {name: rest for name, *rest in tests["rows"]}

    return ask


def test_doctor_says_where_compiled_code_is_kept(doctor, tmp_path, monkeypatch):
    from forgetting.cli import about as command

    monkeypatch.setattr(command, "TESTS", {})
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    machine = doctor()[1]
    assert machine["compiled code"].startswith(str(tmp_path))
    assert machine["compiled code"].endswith(", writable")
    assert not list(tmp_path.glob("*/*"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "/dev/null/x")
    machine = doctor()[1]
    assert machine["compiled code"].startswith("not kept (/dev/null/x")
    assert machine["compiled code"].endswith(REMEDY)


def test_doctor_shows_what_is_broken_as_a_line_with_its_reason(doctor, monkeypatch):
    from forgetting.cli import about as command

    def broken():
        raise RuntimeError("the compiler\nis missing")

    reason = "RuntimeError: the compiler is missing"
    for name in command.MACHINE:
        monkeypatch.setitem(command.MACHINE, name, broken)
    code, machine, tests = doctor()
    assert code == 0
    assert {machine[name] for name in command.MACHINE} == {reason}
    assert {verdict for _, verdict in tests.values()} == {"holds"}
    for number, name in enumerate(command.TESTS, start=1):
        monkeypatch.setitem(command.TESTS, name, broken)
        code, _, tests = doctor()
        assert code == 3
        assert list(tests.values()).count([reason, "FAILS"]) == number


def test_importing_the_package_imports_no_compiler(kernel):
    done = python("-c", "import forgetting, sys; print('numba' in sys.modules)", folder=kernel)
    assert done.stdout == "False\n", done.stderr


RUN = """
import forgetting as fg
tasks = fg.families.gaussian(T=12, d=20, rank=2, seed=0)
losses = fg.run(tasks, fg.orderings.WithReplacement(), 20, seed=0).losses.tolist()
"""


@pytest.mark.parametrize("setting", ["NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT"])
def test_a_run_is_the_same_if_accesses_are_checked_or_nothing_is_compiled(setting, kernel):
    here = {}
    exec(RUN, here)
    code = f"{RUN}\nprint(losses)"
    more = {"NUMBA_CACHE_DIR": str(kernel / "cache"), setting: "1"}
    done = python("-W", "error::RuntimeWarning", "-c", code, folder=kernel, **more)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == pytest.approx(here["losses"], rel=1e-9)


def test_overflow_is_as_silent_where_nothing_is_compiled(kernel):
    code = "import kernel, numpy as np; print(kernel.triple(np.float64(1e308)))"
    done = python("-W", "error::RuntimeWarning", "-c", code, folder=kernel, NUMBA_DISABLE_JIT="1")
    assert done.stdout == "inf\n", done.stderr


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_a_person_at_a_terminal_is_told_once_that_functions_are_compiled(kernel, patience):
    pty = pytest.importorskip("pty")
    script = f"import forgetting.compute.compiling as c; c.PATIENCE = {patience}; {TRY}; print(kernel.third((1, 2, 3)))"
    quiet = python("-c", script, folder=kernel, NUMBA_CACHE_DIR=str(kernel / "quiet"))
    assert (quiet.returncode, quiet.stderr) == (0, "")
    leader, follower = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(kernel), str(PACKAGE.parent)])}
    environment["NUMBA_CACHE_DIR"] = str(kernel / "cold")
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, stderr=follower, env=environment)
    os.close(follower)
    try:
        said = os.read(leader, 4096).decode()
    except OSError:  # Linux: nothing was written
        said = ""
    os.close(leader)
    assert said.count(_compile.WAITING) == (patience == 0.0)
