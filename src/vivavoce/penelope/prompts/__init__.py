"""Prompts of the tester, text files beside one another."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from vivavoce.metrics.prompts import Prompt

HERE = Path(__file__).parent


@cache
def load_prompt(name: str, *allowed: str) -> Prompt:
    """Return a prompt of the tester by the name of its file, with the variables that it may use."""
    words = (HERE / f"{name}.jinja").read_text(encoding="utf-8").rstrip("\n")
    return Prompt(words, f"{name}.jinja", frozenset(allowed))
