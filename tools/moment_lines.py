"""Find the lines of the moment bound again and store them: `python -m tools.moment_lines`.

The lines are solutions of linear programs for some sizes; `forgetting.theory.later.rate_constants` says what a line is.
Only lines that are smaller than the rate u(n) of all tasks are kept. `python -m forgetting.theory.check_lines FILE`
checks what is stored, whatever made it.
"""

from __future__ import annotations

import json
import math

from forgetting.files.atomic import write
from forgetting.theory.later.rate_constants import C_0, LAST, STORED, Form, Line, fresh, largest, solve_line

SIZES: dict[Form, tuple[float, ...]] = {
    "rank": tuple(math.sqrt(D) for D in (1.5, 2, 3, 4, 6, 9, 14, 22, 36)),
    "mean": (0.1, 0.2, 0.4, 0.7, 1, 1.5, 2.2, 3.3, 5, 7.5, 11),
}
GAIN = 0.998  # a line that is not below this share of the rate of all tasks is left out
POINTS = 8000
HEADER = {
    "format": "forgetting/moment-lines/1",
    "made_by": "python -m tools.moment_lines",
    "line": ["share", "most", "ends", "heights"],
    "proved_in": "docs/one-over-k.md, steps 35 to 38",
}


def found(form: Form, n: int | None) -> list[Line]:
    """The lines for n draws, or for large n, each with its largest |f| rounded up."""
    rate = C_0 if n is None else (n + 1) * fresh(n)
    lines: list[Line] = []
    for size in SIZES[form]:
        line = solve_line(form, n, size)
        line = line._replace(most=round(math.ceil(1e5 * largest(form, n, line, POINTS) + 1) / 1e5, 5))
        if line.ends and line.share + size * line.most < GAIN * rate and line not in lines:
            lines.append(line)
    return lines


def text() -> str:
    """The file, a line of text for each line."""
    forms = []
    for form in SIZES:
        by_n = {"large" if n is None else str(n): found(form, n) for n in (*range(1, LAST + 1), None)}
        rows = (
            f'"{n}": [\n' + ",\n".join(json.dumps(line) for line in lines) + "\n]" for n, lines in by_n.items() if lines
        )
        forms.append(f'"{form}": {{\n' + ",\n".join(rows) + "\n}")
    header = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in HEADER.items())
    return "{\n" + header + ',\n"lines": {\n' + ",\n".join(forms) + "\n}\n}\n"


if __name__ == "__main__":
    write(STORED, text().encode())
    print(f"wrote {STORED.name}: {STORED.stat().st_size / 1000:.0f} kB")
