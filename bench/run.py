"""Run every measurement, each in a process of its own so that memory is that of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

for name in ("startup", "replay", "drive", "judge", "penelope", "store", "pages"):
    print(f"── {name}", flush=True)
    subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=True)
