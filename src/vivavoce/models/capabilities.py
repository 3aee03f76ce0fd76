"""What this process has learnt of endpoints: how they can be asked for JSON, and which of them know no tools."""

from __future__ import annotations

from threading import Lock

from vivavoce.models.modes import PROMPTED, STRONGEST, Mode

IGNORED = 2
"""Answers in a row in which the schema was ignored, after which it stands in the prompt."""


class Capabilities:
    """What endpoints said and showed of themselves, by the identity of a model; threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._modes: dict[str, Mode] = {}
        self._ignored: dict[str, int] = {}
        self._without_tools: set[str] = set()

    def mode(self, identity: str) -> Mode:
        """Return the way to ask for JSON: the strongest that was not refused."""
        return self._modes.get(identity, STRONGEST)

    def weaken(self, identity: str, refused: Mode, weaker: Mode) -> None:
        """Take a weaker way to ask for JSON, unless somebody has done so since the refused one was tried."""
        with self._lock:
            if self.mode(identity) == refused:
                self._modes[identity] = weaker

    def note_heeded(self, identity: str) -> None:
        """Keep that an answer followed a schema that stood in no message."""
        with self._lock:
            self._ignored.pop(identity, None)

    def note_ignored(self, identity: str, mode: Mode) -> None:
        """Keep that a schema was accepted and ignored until it stood in a message; soon it does so from the start."""
        with self._lock:
            self._ignored[identity] = self._ignored.get(identity, 0) + 1
            if self._ignored[identity] >= IGNORED and self.mode(identity) == mode:
                self._modes[identity] = PROMPTED

    def lacks_tools(self, identity: str | None) -> bool:
        """Say whether it is known to call no tools; of a model without an identity nothing is known."""
        return identity in self._without_tools

    def note_no_tools(self, identity: str | None) -> None:
        """Keep that it calls no tools."""
        if identity is not None:
            with self._lock:
                self._without_tools.add(identity)

    def forget(self) -> None:
        """Forget everything, as where endpoints have changed."""
        with self._lock:
            self._modes.clear()
            self._ignored.clear()
            self._without_tools.clear()


CAPABILITIES = Capabilities()
