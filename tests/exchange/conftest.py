"""The command line, for formats whose suites are translated."""

from __future__ import annotations

from cli.conftest import viva

__all__ = ["viva"]
