"""Measure again what hunts of 150 problems notice, and write noticed.json beside this file.

`python tests/theory/noticed.py` does that, in about five minutes; `python tests/theory/noticed.py KEY` for one claim.

For each claim that is not refuted: the share of its right side that was reached, rounded down to two digits, and the
terms of its right side whose absence was noticed.
"""

import json
import sys
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path

import forgetting as fg

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools.planting import noticed

TABLE = Path(__file__).with_name("noticed.json")
BUDGET = 150


def rounded_down(share):
    value = Decimal(share)
    return float(value.quantize(Decimal(1).scaleb(value.adjusted() - 1), ROUND_FLOOR))


def blind(claim):
    return claim.hunt(budget=BUDGET, known=False)  # what the problems of a hunt notice, and not its records


def measured(claim):
    says = noticed(blind(claim), blind)
    terms = [term for term, seen in says.terms.items() if seen]
    return {"reached": says.reached and rounded_down(says.reached), "terms": terms}


def main(only=None):
    known = json.loads(TABLE.read_text())
    table = {}
    for claim in fg.claims.all():
        if claim.status != "refuted":
            table[claim.key] = measured(claim) if only in (None, claim.key) else known[claim.key]
            print(claim.key, table[claim.key], file=sys.stderr, flush=True)
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in table.items()]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:2])
