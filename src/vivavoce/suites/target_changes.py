"""What a command line changes in a suite: the model, the address, the key of its targets, and the recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.suites.letta_suite import targets_of

_LETTA = frozenset(("letta", "letta_code"))
_MODELS = _LETTA | {"openai"}


@dataclass(frozen=True, slots=True)
class TargetChanges:
    """Another model, address or key for the targets of a suite, or a recording, each None where its own stays.

    `live` names what the recording does not answer.
    """

    model_handle: str | None = None
    base_url: str | None = None
    api_key: str | None = None
    recording: str | None = None
    live: Sequence[str] = ()

    def __bool__(self) -> bool:
        return self != TargetChanges()

    def apply(self, data: dict[str, Any]) -> None:
        """Change a suite, which is described with our keys.

        Raises:
            UsageError: a target has no such field, or something is live and there is no recording.
        """
        self._apply_recording(data)
        for target in targets_of(data).values():
            kind = str(target.get("kind"))
            for option, (kinds, field, value) in self._fields().items():
                if value is not None and kind not in kinds:
                    raise UsageError(
                        f"{option}: a target of kind '{kind}' has no {field}{_INSTEAD.get((option, kind), '')}"
                    )
                if value is not None:
                    target[field] = value

    def _apply_recording(self, data: dict[str, Any]) -> None:
        written: Any = data.get("recording")
        own: dict[str, Any] = {"path": written} if isinstance(written, str) else dict(written or {})
        given: dict[str, Any] = {} if self.recording is None else {"path": self.recording}
        if self.live:
            given["live"] = [*own.get("live", ()), *self.live]
        if given and "path" not in {**own, **given}:
            raise UsageError("--live needs a recording that answers everything else: --recording FILE")
        if given:
            data["recording"] = {**own, **given}

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
