"""Clusters of failures: what failed in a run, grouped by what the failures have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from vivavoce.extensions import Command, hookimpl
from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.extensions import Page
    from vivavoce.records.run import Run

FEATURE = "vivavoce.features.clusters"


@hookimpl
def register_commands() -> Mapping[str, Command]:
    """Add `viva clusters`."""
    line = "Group what failed in a run by what the failures share."
    return {"clusters": Command(line, f"{FEATURE}.command:command", after="groups")}


@hookimpl
def register_routes() -> list[str]:
    """Add the page of the clusters of a run, and their data."""
    return [f"{FEATURE}.api:router", f"{FEATURE}.page:router"]


@hookimpl
def register_page_files() -> Path:
    """Add the template and the style of the page."""
    return Path(__file__).parent


@hookimpl
def run_page_links(run: Run, grading: str | None) -> list[Page]:
    """Link to the clusters of a run, below its conversations."""
    return cast("list[Page]", lazy(f"{FEATURE}.page:links_of_run")(run, grading))
