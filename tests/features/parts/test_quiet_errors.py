from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from vivavoce.features.parts.cluster import quiet_errors

WRITE = "import sys; print('of a process', file=sys.stderr)"


def test_only_the_thread_that_asked_for_quiet_writes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    def speak() -> None:
        print("of another thread", file=sys.stderr)

    with quiet_errors():
        thread = threading.Thread(target=speak)
        thread.start()
        thread.join()
        subprocess.run([sys.executable, "-c", WRITE], check=True)
        print("our own", file=sys.stderr)
    speak()
    subprocess.run([sys.executable, "-c", WRITE], check=True)
    assert capfd.readouterr().err.splitlines() == ["our own", "of another thread", "of a process"]
