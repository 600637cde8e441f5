"""The command line. Heavy imports wait until a command runs.

Exit codes: 0 done; 2 wrong usage or input that cannot be used; 3 a statement was violated, a solve did not
converge, or a cell of a study failed; 130 interrupted by Ctrl-C, 143 by SIGTERM, 129 by a closed terminal.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from forgetting.cli.app import make_app
from forgetting.cli.interrupts import exit_code, pressed, uninterrupted
from forgetting.core.plugins import blamed
from forgetting.core.progress import shown
from forgetting.core.text import one_line
from forgetting.errors import ForgettingError
from forgetting.files.atomic import clean_up, kept

__all__ = ["main"]

BAD_INPUT = 2
INTERRUPTED = 130  # how newer parsers of options report Ctrl-C
LONGEST = 1000  # characters of a message


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; errors and warnings are one line on stderr each.

    >>> main(["table", "classification", "--k", "0"])
    Traceback (most recent call last):
    SystemExit: 2
    """
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        code = run_app(list(sys.argv[1:] if arguments is None else arguments))
    sys.exit(code)


def run_app(arguments: list[str]) -> int:
    """The exit code of a command line."""
    kept.clear()
    try:
        with uninterrupted():
            return _run(arguments)
    except KeyboardInterrupt:  # before or after the command itself
        return _interrupted()
    finally:
        clean_up()


def _run(arguments: list[str]) -> int:
    try:
        with shown(True):
            code = make_app()(arguments, standalone_mode=False, prog_name="forgetting")
        sys.stdout.flush()
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        return _interrupted()
    except ForgettingError as error:
        return _interrupted() if pressed() else _complain(error.on_command_line or str(error), BAD_INPUT)
    except BrokenPipeError:  # the reader of a pipe has gone: nothing to complain about
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _complain(str(error), BAD_INPUT)
    except (MemoryError, OverflowError) as error:
        return _complain(f"a number here is too large for this machine ({error})", BAD_INPUT)
    except SystemExit as error:  # how a printer ends when the reader of a pipe has gone
        failure = blamed(error)
        return 0 if failure is None else _complain(failure, BAD_INPUT)
    except Exception as error:
        return _interrupted() if pressed() else _usage(error)


def _usage(error: Any) -> int:
    """Report an error of the option parser; any other error is a defect and is raised."""
    if type(error).__name__ == "Abort":
        return _interrupted()
    if isinstance(error, ValueError) and any(words in str(error) for words in ("too big", "Maximum allowed size")):
        return _complain(f"a number here is too large for this machine ({error})", BAD_INPUT)
    if not hasattr(error, "format_message"):
        if (failure := blamed(error)) is not None:
            return _complain(failure, BAD_INPUT)
        raise error
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        print(context.get_help())
        return 0
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return _complain(f"{error.format_message().rstrip('.')}{hint}", BAD_INPUT)


def _interrupted() -> int:
    return _complain(f"interrupted; {kept[-1] if kept else 'nothing was written'}", exit_code(), "")


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    _complain(str(message), 0, "warning: ")


def _complain(message: str, code: int, kind: str = "error: ") -> int:
    line = one_line(message)
    if len(line) > LONGEST:  # begins with what it is about, and ends with what to do
        line = f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"
    print(f"{kind}{line}", file=sys.stderr)
    return code
