"""The modules of this folder import each other by name."""

import sys
from pathlib import Path

folder = str(Path(__file__).parent)
if folder not in sys.path:
    sys.path.insert(0, folder)
