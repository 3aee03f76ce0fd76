"""`Translation`: the work of converting a suite of letta-evals, with what was changed and what cannot be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from vivavoce.errors import Problem
from vivavoce.suites.document import Document, KeyPath

Era = Literal["A", "B", "C", "D"]


@dataclass(slots=True)
class Translation:
    """A document with our own keys, with what was changed (`notes`) and what is not supported (`problems`).

    `replaced` are the targets that the caller put in place of the suite's own.
    """

    document: Document
    era: Era | None
    replaced: Sequence[Mapping[str, Any]] = ()
    notes: list[str] = field(default_factory=list[str])
    problems: list[Problem] = field(default_factory=list[Problem])

    @property
    def data(self) -> dict[str, Any]:
        """The data of the document."""
        return self.document.data

    def refuse(self, at: KeyPath, message: str) -> None:
        """Report a key that asks for something unsupported."""
        self.problems.append(self.document.problem(at, message))

    def note(self, at: KeyPath, message: str) -> None:
        """Report a key that was renamed or dropped."""
        self.notes.append(str(self.document.problem(at, message)))

    def rename(self, old: str, new: str) -> None:
        """Give a key of the top another name, at the same place."""
        self.data[new] = self.data.pop(old)
        self.document.places[new,] = self.document.places.get((old,), (1, 1))
        self.note((old,), f"is called {new} here")


def section(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a mapping in the data, an empty one where there is none."""
    value = data.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def targets_of(data: dict[str, Any]) -> dict[KeyPath, dict[str, Any]]:
    """Return the targets of a suite by their places."""
    listed = data.get("targets")
    found: dict[KeyPath, Any] = {("target",): data.get("target")}
    found |= {
        ("targets", i): one for i, one in enumerate(cast("list[Any]", listed) if isinstance(listed, list) else [])
    }
    return {at: cast("dict[str, Any]", one) for at, one in found.items() if isinstance(one, dict)}
