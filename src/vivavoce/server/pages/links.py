"""The addresses of pages; whatever a name holds, it stays one part of the path."""

from __future__ import annotations

from urllib.parse import quote, urlencode

Value = str | int | None


def run_page(run: str, **query: Value) -> str:
    """Return the address of a run."""
    return f"/runs/{_part(run)}{_query(query)}"


def sample_page(run: str, sample: str, **query: Value) -> str:
    """Return the address of a conversation; a name that browsers would read as a folder is given in the query."""
    if sample.strip(".") == "":
        return f"/runs/{_part(run)}/samples/-{_query({'id': sample, **query})}"
    return f"/runs/{_part(run)}/samples/{_part(sample)}{_query(query)}"


def sample_data(run: str, sample: str, trial: int, **query: Value) -> str:
    """Return the address of a conversation as JSON."""
    return f"/api/v1/runs/{_part(run)}/samples/{_part(sample)}/{trial}{_query(query)}"


def run_data(run: str) -> str:
    """Return the address of a run as JSON."""
    return f"/api/v1/runs/{_part(run)}"


def run_list(**query: Value) -> str:
    """Return the address of the list of runs."""
    return f"/{_query(query)}"


def _part(name: str) -> str:
    return quote(name, safe="", errors="replace")


def _query(given: dict[str, Value]) -> str:
    words = {name: value for name, value in given.items() if value is not None}
    return f"?{urlencode(words, errors='replace')}" if words else ""
