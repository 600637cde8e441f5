"""Lint, types, layers and the tests of what changed since a commit, in under a minute: `make quick SINCE=main~3`.

Without SINCE, the commit is HEAD. What changed is what git says: the commits since then, and the working tree. Tests
are chosen by three rules: test files that changed, and doctests of modules that changed; then test files that name a
class or a function of a changed module, or another file that changed, those with the rarest names first, and those of
the public interface; then the other tests of its package, or of the folder of a changed helper of tests. What is not
begun after 35 seconds is left out, and counted: `make test` runs all.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
SECONDS = 35
MOST_FILES = 6  # test files that are chosen by the names in them


def changed(since: str) -> list[Path]:
    """The files that differ from a commit, and are there."""
    names: set[str] = set()
    for command in (["diff", "--name-only", since], ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"git {' '.join(command)}: {done.stderr.strip()}")
        names.update(done.stdout.splitlines())
    return [Path(name) for name in sorted(names) if (ROOT / name).exists()]


def defined(module: Path) -> set[str]:
    """The public classes and functions of a module."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    kinds = (ast.ClassDef, ast.FunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


def tests_of(files: list[Path]) -> list[str]:
    """What pytest is to run, the most closely related first."""
    chosen: dict[str, None] = {}
    tests = [path.relative_to(ROOT) for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    for path in files:
        if path.suffix == ".py" and (path.name.startswith("test_") or path.parts[:2] == ("src", "forgetting")):
            chosen[str(path)] = None
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in tests}
    named: dict[Path, float] = {}
    near: dict[Path, None] = {}
    for path in files:
        module = path.parts[:2] == ("src", "forgetting")
        if module:
            package = path.parts[2].removesuffix(".py")
            near.update(dict.fromkeys(test for test in tests if test.parts[1] in (package, f"test_{package}.py")))
        elif path.parts[0] == "tests" and not path.name.startswith("test_"):
            near.update(dict.fromkeys(test for test in tests if test.parent == path.parent))
        # a file that is not imported is known by its name or by the name of its folder
        data = module and not (ROOT / path.parent / "__init__.py").exists()
        other = {path.name, path.stem, *([path.parent.name] if data else [])}
        for name in defined(path) if module and path.suffix == ".py" else other if path.suffix != ".md" else ():
            word = re.compile(rf"\b{re.escape(name)}\b")
            naming = [test for test, text in texts.items() if word.search(text)]
            for test in naming:
                named[test] = named.get(test, 0.0) + 1 / len(naming)
    related = sorted(named, key=lambda test: -named[test])[:MOST_FILES]
    if any(path.parts[0] == "tools" or path.name in ("Makefile", "pyproject.toml") for path in files):
        chosen |= dict.fromkeys(["tests/test_tools.py", "tests/test_suite.py"])
    if any(path.parts[:2] == ("src", "forgetting") for path in files):  # what users see may change with any module
        related += [Path("tests/interface/test_manifest.py"), Path("tests/interface/test_command_texts.py")]
    chosen.update(dict.fromkeys(map(str, related)))
    chosen.update(dict.fromkeys(map(str, sorted(near, key=lambda test: -named.get(test, 0.0)))))
    if any(path.suffix == ".md" for path in files):
        chosen["tests/test_readme.py"] = None
    return list(chosen)


def main(since: str) -> int:
    """The exit code: 0 if everything passed."""
    began = time.monotonic()
    files = changed(since)
    if not files:
        print(f"nothing has changed since {since}")
        return 0
    code = [str(path) for path in files if path.suffix == ".py"]
    checks = {"types": [BIN / "mypy"], "layers": [BIN / "lint-imports"]}
    if code:
        checks |= {"lint": [BIN / "ruff", "check", *code], "format": [BIN / "ruff", "format", "--check", *code]}
    running = {
        name: subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name, command in checks.items()
    }
    failed = []
    if tests := tests_of(files):
        one_thread = os.environ | dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"], "1")
        options = ["-qq", "-n", "2", "--order", "file", "--seconds", str(SECONDS)]
        print(f"{len(files)} files changed since {since}; tests: {' '.join(tests)}", flush=True)
        command = [sys.executable, "-m", "pytest", *options, *tests]
        if subprocess.run(command, cwd=ROOT, env=one_thread, check=False).returncode not in (0, 5):
            failed.append("tests")
    for name, process in running.items():
        said, _ = process.communicate()
        if process.returncode:
            failed.append(name)
            print(said)
    print(f"{'failed: ' + ', '.join(failed) if failed else 'all passed'}, in {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))
