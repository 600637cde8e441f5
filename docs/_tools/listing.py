"""Everything that the registries hold, as a page that `make docs` writes: `python docs/_tools/listing.py`.

Plugins that are installed are listed like the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

import forgetting as fg
from forgetting import expectation
from forgetting.core.plugins import load_plugins
from forgetting.report.settings import section_makers
from forgetting.sets import registry as sets
from forgetting.solver import registry as methods


def listing() -> str:
    """The page, in Markdown."""
    load_plugins()
    quantities = expectation.quantities
    return "\n".join(
        [
            "# What there is",
            "",
            "Read from the registries; packages of others add to them.",
            *_table("Orderings", ((name, fg.orderings.registry.get(name).__doc__) for name in fg.orderings.registry)),
            *_table("Schemes", ((name, fg.schemes.registry.get(name).__doc__) for name in fg.schemes.registry)),
            *_table("Convex sets", ((name, sets.get(name).__doc__) for name in sets)),
            *_table(
                "Engines of `expect`", ((name, expectation.engines.get(name).__doc__) for name in expectation.engines)
            ),
            *_table("Quantities of `expect`", ((name, quantities.get(name).meaning) for name in quantities)),
            *_table("Methods of `solve`", ((name, methods.get(name).__doc__) for name in methods)),
            *_table("Bounds", ((bound.key, _bound(bound)) for bound in fg.bounds.all_bounds())),
            *_table("Sections of the report", ((key, maker.make.__doc__) for key, maker in section_makers().items())),
            "",
        ]
    )


def _bound(bound: fg.bounds.Bound) -> str:
    """What it is, and the largest share of it that was ever reached, or why there is none."""
    record = bound.record
    reached = f"largest ratio found {record.ratio:.4g}, at {record.at}" if record is not None else bound.why_no_record
    return f"{bound.name} ({bound.source}); {reached}"


def _table(title: str, rows: Iterable[tuple[str, str | None]]) -> list[str]:
    lines = ["", f"## {title}", "", "| name | |", "|---|---|"]
    for name, words in rows:
        first = (words or "").strip().split("\n")[0].replace("|", "\\|")
        lines.append(f"| `{name}` | {first} |")
    return lines


if __name__ == "__main__":
    print(listing())
