"""Prompts of the tester, text files beside one another."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from vivavoce.metrics.prompts import Prompt

HERE = Path(__file__).parent


@cache
def _words(name: str) -> str:
    return (HERE / f"{name}.jinja").read_text(encoding="utf-8").rstrip("\n")


def packaged(name: str, allowed: Iterable[str]) -> Prompt:
    """Return a prompt of the tester by the name of its file, with the variables that it may use."""
    return Prompt(_words(name), f"{name}.jinja", frozenset(allowed))
