"""Run every measurement, or those that are named, each in a process of its own so that memory is that of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

ALL = [
    "startup",
    "promises",
    "intervals",
    "sampled",
    "stopping",
    "cascade",
    "realism",
    "forks",
    "replay",
    "expect",
    "drive",
    "frameworks",
    "judge",
    "calls",
    "parts",
    "prefixes",
    "penelope",
    "store",
    "pages",
    "formats",
    "traces",
]

for name in sys.argv[1:] or ALL:
    print(f"── {name}", flush=True)
    subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=True)
