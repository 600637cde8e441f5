"""The explorer: one page in which tasks can be turned, with exact expectations, bounds and worst cases that move along.

>>> import forgetting as fg
>>> page = fg.explore(fg.families.two_lines(0.5))
>>> page.html[:15], len(page.html) < 10**6
('<!doctype html>', True)
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from forgetting.core.arrays import as_flag, as_path
from forgetting.core.names import only
from forgetting.core.text import escape
from forgetting.errors import InvalidInputError
from forgetting.explorer.data import MOST_DIMENSIONS, MOST_TASKS
from forgetting.explorer.page import page_html
from forgetting.files.outputs import check_output, write_output
from forgetting.tasks import Problem

__all__ = ["MOST_DIMENSIONS", "MOST_TASKS", "Explorer", "explore"]
__dir__ = only(__all__)
HEIGHT = 1180  # of the frame in a notebook, in pixels


@dataclass(frozen=True)
class Explorer:
    """The explorer as a page: shows itself in a notebook, and writes itself to a file.

    Attributes:
        html: the whole page, with its scripts and its style.

    >>> import forgetting as fg
    >>> print(fg.explore())
    an explorer of tasks: show it in a notebook, or write it by .save("explorer.html") and open it
    """

    html: str

    def __str__(self) -> str:
        return 'an explorer of tasks: show it in a notebook, or write it by .save("explorer.html") and open it'

    __repr__ = __str__

    def save(self, path: str | PathLike[str], force: bool = False) -> Path:
        """Write the page to a file, whose name ends in .html.

        Args:
            path: the file.
            force: whether a file that this library wrote before may be replaced.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as here:
        ...     explore().save(f"{here}/page.html").name
        'page.html'
        """
        target = checked_name(path)
        write_output(target, self.html.encode(), force=as_flag(force, "force"))
        return target

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="Explorer of tasks" srcdoc="{escape(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'allow="clipboard-write" style="width:100%;height:{HEIGHT}px;border:0"></iframe>'
        )


def checked_name(path: str | PathLike[str]) -> Path:
    """The path of a page, or an error if its name has another ending than .html."""
    target = as_path(path, "out")
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(f"out = {str(target)!r}: the explorer is a page, so that the name must end in .html")
    return target


def explore(tasks: Problem | None = None, out: str | PathLike[str] | None = None, *, force: bool = False) -> Explorer:
    """A page on which tasks can be turned, added and reordered, and exact expectations, bounds and worst cases follow.

    One HTML file that needs no network: expected loss and forgetting against k with every bound, the path of the steps,
    the angles between tasks, and the forgetting of each task, for orders at random (with and without replacement),
    cyclic, given and greedy orders, for projections, gradient steps, ridge, decay and label noise. The address of the
    page holds what is shown. A guided tour of eight steps tells what the paper is about. See docs/explorer.md.

    Args:
        tasks: linear tasks to begin with, at most 12 that span at most 12 dimensions (d may be large: tasks are reduced
            to their joint row space); two lines and other families if left out.
        out: the file to write, .html.
        force: whether a file that this library wrote before may be replaced.

    Cost: a few seconds at most, 0.3 MB.

    >>> import forgetting as fg
    >>> explore(fg.families.gaussian(T=20, d=30))
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: the tasks have 20 tasks, and the explorer shows at most 12: choose some of ...
    """
    if out is not None:
        check_output(checked_name(out), force=as_flag(force, "force"))  # before anything is computed
    page = Explorer(page_html(tasks))
    if out is not None:
        page.save(out, force=force)
    return page
