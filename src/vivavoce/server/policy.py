"""What requests may have run: the suites of one folder, and models of a list."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from vivavoce.errors import NotFound, UsageError
from vivavoce.settings import settings
from vivavoce.suites.document import MAX_BYTES

_KEYS = [re.compile(rb"(?:^|[{,])[ \t]*[\"']?%s[\"']?[ \t]*:" % key, re.MULTILINE) for key in (b"dataset", b"graders")]


@dataclass(frozen=True, slots=True)
class ServerPolicy:
    """The folder whose suites may be run, and the models that a request may name besides those of the settings.

    A request never brings code, and calls cost money: what is run and whom it asks was chosen by whoever serves.
    """

    workspace: Path = field(default_factory=Path.cwd)
    models: frozenset[str] = frozenset()

    def judge(self, name: str | None) -> str | None:
        """Return the judge that a request asks for, that of VIVAVOCE_JUDGE where it names none.

        Raises:
            UsageError: it may not name that one.
        """
        return self._model(name, settings().judge, "judge", "VIVAVOCE_JUDGE")

    def tester(self, name: str | None) -> str | None:
        """Return the tester that a request asks for, that of VIVAVOCE_TESTER where it names none.

        Raises:
            UsageError: it may not name that one.
        """
        return self._model(name, settings().tester, "tester", "VIVAVOCE_TESTER")

    def suite(self, name: str) -> Path:
        """Return a suite file below the workspace, links followed.

        Raises:
            NotFound: there is none of that name, it leads elsewhere, or the file is something other than a suite,
                of which nothing is said to whoever may begin work.
        """
        workspace = self.workspace.resolve()
        try:
            path = (workspace / name).resolve()
            inside = path.is_relative_to(workspace) and path.suffix in (".yaml", ".yml") and is_suite(path)
        except (OSError, ValueError, RuntimeError):  # no system takes such a name
            inside = False
            path = workspace
        if not inside:
            raise NotFound("suite", name, within="the served folder")
        return path

    def shown(self, text: str) -> str:
        """Return a message for whoever asks from elsewhere: paths begin at the served folder, not at the root."""
        for folder in dict.fromkeys((str(self.workspace.resolve()), str(self.workspace.absolute()))):
            text = text.replace(folder.rstrip("/") + "/", "").replace(folder, ".")
        return text

    def _model(self, name: str | None, default: str | None, role: str, variable: str) -> str | None:
        if name is None or name == default or name in self.models:
            return default if name is None else name
        raise UsageError(
            f"a request may not name the {role} '{name}': serve with --judge {role.upper()}, or {variable}"
        )


def is_suite(path: Path) -> bool:
    """Say whether a file has the keys of a suite; whether it is a good one is found out when it is read."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return False
        text = path.read_bytes()
    except OSError:  # gone, or not ours to read
        return False
    return all(key.search(text) for key in _KEYS)
