"""`viva validate doctor`: what is installed on this machine, and what is missing for which kind of target."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import ssl
import sys
from collections.abc import Iterator
from typing import Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from vivavoce.cli.output import StoreOption, out, store_of
from vivavoce.errors import VivavoceError
from vivavoce.store.store import Store

Answer = Literal["ok", "missing", "broken"]
_STYLES: dict[str, str] = {"ok": "green", "missing": "yellow", "broken": "bold red"}
_EXTRAS = {
    "embed": ("tokenizers", "safetensors"),
    "frames": ("pandas", "pyarrow"),
    "hf": ("datasets",),
    "letta": ("letta_client",),
    "mcp": ("mcp",),
    "mlflow": ("mlflow",),
    "polars": ("polars",),
    "postgres": ("psycopg",),
    "providers": ("pydantic_ai",),
    "ray": ("ray", "pyarrow"),
    "sentiment": ("vaderSentiment",),
    "speed": ("uvloop",),
    "wandb": ("wandb",),
}
_KEYS = {"OPENAI_API_KEY": "judges and targets at OpenAI", "LETTA_API_KEY": "Letta Cloud"}


def command(
    *,
    store: StoreOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Also exit with 2 if something is missing.")] = False,
) -> None:
    """Check this machine: Python, extras, API keys (names only), programs, certificates, and the store.

    Exits with 2 if something is broken. Missing items affect only some targets.
    """
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    answers: list[Answer] = []
    for what, answer, detail in (*_python(), *_extras(), *_keys(), *_programs(), _certificates(), _store(store)):
        answers.append(answer)
        table.add_row(what, Text(answer, style=_STYLES[answer]), detail)
    out().print(table)
    if "broken" in answers or (strict and "missing" in answers):
        raise typer.Exit(2)


def _python() -> Iterator[tuple[str, Answer, str]]:
    supported = sys.version_info >= (3, 11)
    yield "Python", "ok" if supported else "broken", f"{platform.python_version()} ({sys.executable})"


def _extras() -> Iterator[tuple[str, Answer, str]]:
    for extra, modules in _EXTRAS.items():
        absent = [module for module in modules if importlib.util.find_spec(module) is None]
        hint = f"pip install 'vivavoce[{extra}]'" if absent else ", ".join(modules)
        yield f"extra {extra}", "missing" if absent else "ok", hint


def _keys() -> Iterator[tuple[str, Answer, str]]:
    for name, purpose in _KEYS.items():
        yield name, "ok" if os.environ.get(name) else "missing", f"for {purpose}"


def _programs() -> Iterator[tuple[str, Answer, str]]:
    found = shutil.which("letta")
    yield "letta", "ok" if found else "missing", found or "for targets of kind letta_code: pip install letta"


def _certificates() -> tuple[str, Answer, str]:
    count = len(ssl.create_default_context().get_ca_certs())
    known = count or bool(ssl.get_default_verify_paths().cafile or ssl.get_default_verify_paths().capath)
    return "certificates", "ok" if known else "broken", "for https addresses; Debian's package ca-certificates has them"


def _store(address: str | None) -> tuple[str, Answer, str]:
    place = store_of(address)
    try:
        with Store.open(place, create=False) as opened:
            return "store", "ok", f"{place}: {len(opened.runs(10_000))} runs"
    except VivavoceError as error:
        absent = "://" not in place and not os.path.exists(place)
        return "store", "missing" if absent else "broken", str(error)
