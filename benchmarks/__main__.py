"""Run all benchmarks and keep the ratios: python -m benchmarks [--save FILE]."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import import_module
from pathlib import Path

from benchmarks import timing


def main() -> None:
    for name in sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py")):
        print(f"\n{name}\n{'':66} {'ours':>9} {'theirs':>9}")
        import_module(f"benchmarks.{name}").main()
    if "--save" in sys.argv:
        about = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        path = Path(sys.argv[sys.argv.index("--save") + 1])
        path.write_text(json.dumps({**about, "results": timing.RESULTS}, indent=1) + "\n")


if __name__ == "__main__":
    main()
