"""What requests may have run: the suites of one folder, and models of a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from vivavoce.errors import UsageError
from vivavoce.settings import settings


@dataclass(frozen=True, slots=True)
class Allowed:
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
            UsageError: there is none of that name, or it leads elsewhere.
        """
        workspace = self.workspace.resolve()
        try:
            path = (workspace / name).resolve()
            inside = path.is_relative_to(workspace) and path.suffix in (".yaml", ".yml") and path.is_file()
        except (OSError, ValueError, RuntimeError):  # no system takes such a name
            inside = False
            path = workspace
        if not inside:
            raise UsageError(f"no suite '{name}' below the served folder")
        return path

    def _model(self, name: str | None, default: str | None, role: str, variable: str) -> str | None:
        if name is None or name == default or name in self.models:
            return default if name is None else name
        raise UsageError(
            f"a request may not name the {role} '{name}': serve with --judge {role.upper()}, or {variable}"
        )
