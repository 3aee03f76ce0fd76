"""Calibrations: how far a judge can be believed, by the labels of people; and cascades of two judges."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from vivavoce.extensions import Command, hookimpl
from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.extensions import Page
    from vivavoce.records.run import Grading

FEATURE = "vivavoce.features.calibration"


@hookimpl
def register_commands() -> Mapping[str, Command]:
    """Add `viva calibrate` and `viva cascade`."""
    line = "Say how far a judge can be believed, and correct its rates."
    cascade = "Choose where a cheap judge decides, and what that saves."
    return {
        "calibrate": Command(line, f"{FEATURE}.command:command", after="metrics"),
        "cascade": Command(cascade, f"{FEATURE}.cascade_command:command", after="calibrate"),
    }


@hookimpl
def register_routes() -> list[str]:
    """Add the page of a calibration, and its data."""
    return [f"{FEATURE}.api:router", f"{FEATURE}.page:router"]


@hookimpl
def register_page_files() -> Path:
    """Add the template of the page."""
    return Path(__file__).parent


@hookimpl
def label_links(grading: Grading, grader: str) -> list[Page]:
    """Link from the labels of a grader to the calibration of its judge."""
    return cast("list[Page]", lazy(f"{FEATURE}.page:links_of_labels")(grading, grader))
