"""Watching production: traces come in, become conversations, and are judged as runs of a store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vivavoce.extensions import Command, Page, hookimpl

FEATURE = "vivavoce.features.watch"


@hookimpl
def register_commands() -> Mapping[str, Command]:
    """Add `viva watch-traces`."""
    line = "Judge conversations of production as their traces come in."
    return {"watch-traces": Command(line, f"{FEATURE}.command:command", after="merge")}


@hookimpl
def register_routes() -> list[str]:
    """Add the page of a watch, and its data."""
    return [f"{FEATURE}.api:router", f"{FEATURE}.page:router"]


@hookimpl
def register_page_files() -> Path:
    """Add the template and the style of the page."""
    return Path(__file__).parent


@hookimpl
def page_tabs() -> list[Page]:
    """Add the tab."""
    return [Page("Watch", "/watch")]
