"""What a command line changes in the targets of a suite: the model, the address, the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.suites.translation import targets_of

_LETTA = frozenset(("letta", "letta_code"))
_MODELS = _LETTA | {"openai"}


@dataclass(frozen=True, slots=True)
class TargetChanges:
    """Another model, address or key for the targets of a suite, each None where the suite's own stays."""

    model_handle: str | None = None
    base_url: str | None = None
    api_key: str | None = None

    def __bool__(self) -> bool:
        return self != TargetChanges()

    def apply(self, data: dict[str, Any]) -> None:
        """Change the targets of a suite, which is described with our keys.

        Raises:
            UsageError: a target has no such field.
        """
        for target in targets_of(data).values():
            kind = str(target.get("kind"))
            for option, (kinds, field, value) in self._fields().items():
                if value is not None and kind not in kinds:
                    raise UsageError(
                        f"{option}: a target of kind '{kind}' has no {field}{_INSTEAD.get((option, kind), '')}"
                    )
                if value is not None:
                    target[field] = value

    def _fields(self) -> Mapping[str, tuple[frozenset[str], str, Any]]:
        """Return for each option the kinds of targets that have its field, the field, and what it becomes."""
        handles = None if self.model_handle is None else [self.model_handle]
        return {
            "--model-handle": (_MODELS, "model_handles", handles),
            "--base-url": (_MODELS, "base_url", self.base_url),
            "--api-key": (_LETTA, "api_key", self.api_key),
        }


_INSTEAD = {("--api-key", "openai"): "; set the environment variable that its api_key_env names"}
"""What to do instead, by option and kind."""
