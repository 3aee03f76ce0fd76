"""A dataset that a suite pins: its file has the content of one version, and no other."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from vivavoce.errors import UsageError
from vivavoce.samples.content import Content, read_content
from vivavoce.samples.difference import difference
from vivavoce.samples.kept import kept_versions, read_version, unknown_version
from vivavoce.suites.load import Suite


def check_pinned(suite: Suite) -> None:
    """Check that the dataset has the content that the suite pins, if it pins any.

    Raises:
        UsageError: it differs; the text says in what, and how to accept it.
    """
    spec = suite.spec.dataset
    if spec.path is None or spec.version is None:
        return
    place = suite.base / spec.path
    content = read_content(place)
    if content.version != spec.version:
        rule = f"'{spec.path}' is not the pinned {spec.version}: {_how_it_differs(place, spec.version, content)}"
        accept = f"To accept it: viva dataset keep {quote(str(place))}, and write version: {content.version}"
        raise UsageError(suite.document.problem(("dataset", "version"), f"{rule}. {accept}"))


def _how_it_differs(place: Path, version: str, content: Content) -> str:
    if all(one.version != version for one in kept_versions(place)):
        return f"{unknown_version(place, version)}; so what changed cannot be said"
    words = difference(read_version(place, version), content).in_words()
    return f"{words}. See it with: viva dataset diff {quote(str(place))} {version}"
