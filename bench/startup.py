"""How long it takes until something is there: the median of several starts, in milliseconds."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

VIVA = Path(sys.executable).with_name("viva")


def median_ms(command: list[str], runs: int = 7) -> float:
    """Return the median wall time of a command."""
    times: list[float] = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


bare = median_ms([sys.executable, "-c", "pass"])
package = median_ms([sys.executable, "-c", "import vivavoce"])
print(f"import vivavoce {package - bare:.0f} ms over a bare Python of {bare:.0f} ms (asked: < 100)")
print(f"viva --help     {median_ms([str(VIVA), '--help']):.0f} ms (asked: < 300)")
for name in ("run", "serve"):
    print(f"viva {name} --help{' ' * (6 - len(name))}{median_ms([str(VIVA), name, '--help']):.0f} ms")
