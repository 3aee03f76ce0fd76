"""The policy of a server: requests may run the suites of one folder and use models of a list."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from vivavoce.errors import NotFound, UsageError
from vivavoce.plugins import is_file_reference
from vivavoce.settings import settings
from vivavoce.suites.document import MAX_BYTES

_KEYS = [re.compile(rb"(?:^|[{,])[ \t]*[\"']?%s[\"']?[ \t]*:" % key, re.MULTILINE) for key in (b"dataset", b"graders")]


@dataclass(frozen=True, slots=True)
class ServerPolicy:
    """The folder whose suites requests may run, and the models that they may use besides those of the settings.

    A request never brings code, and calls cost money: the operator of the server decides what runs and which models are
    called.
    """

    workspace: Path = field(default_factory=Path.cwd)
    models: frozenset[str] = frozenset()
    writes_datasets: bool = False
    """Whether requests may add rows to the JSONL files of the folder."""
    lease: float = 30.0
    """Seconds after which another server takes over the jobs of this one if it stands still."""
    hang_seconds: float = 60.0
    """Seconds after which this server gives up jobs that block its thread for jobs."""
    private_webhooks: bool = False
    """Whether webhooks may lead to this machine or to a private network."""

    def dataset(self, name: str) -> Path:
        """Return the JSONL file of the workspace to which a request may add a row.

        Raises:
            UsageError: this server writes no datasets, or the name leads elsewhere.
        """
        if not self.writes_datasets:
            raise UsageError(
                "this server does not write datasets; copy the row, or start the server with --write-datasets"
            )
        workspace = self.workspace.resolve()
        try:
            path = (workspace / name).resolve()
            parts = path.relative_to(workspace).parts
            usable = (
                path.suffix == ".jsonl" and path.parent.is_dir() and not any(part.startswith(".") for part in parts)
            )
        except (OSError, ValueError, RuntimeError):  # no system takes such a name, or it is elsewhere
            usable, path = False, workspace
        if not usable:
            raise UsageError("name a file in the served folder that ends with .jsonl, such as captured.jsonl")
        return path

    @property
    def judges(self) -> list[str]:
        """The models that a request may name as judge, VIVAVOCE_JUDGE first; models in files keep no answers."""
        known = dict.fromkeys([settings().judge, *sorted(self.models)])
        return [one for one in known if one is not None and not is_file_reference(one)]

    def judge(self, name: str | None) -> str | None:
        """Return the judge of a request, by default that of VIVAVOCE_JUDGE.

        Raises:
            UsageError: the model is not allowed.
        """
        return self._model(name, settings().judge, "judge", "VIVAVOCE_JUDGE")

    def tester(self, name: str | None) -> str | None:
        """Return the tester of a request, by default that of VIVAVOCE_TESTER.

        Raises:
            UsageError: the model is not allowed.
        """
        return self._model(name, settings().tester, "tester", "VIVAVOCE_TESTER")

    def suite(self, name: str) -> Path:
        """Return a suite file in the workspace, following links.

        Raises:
            NotFound: there is none of that name, it leads outside, or the file is not a suite; the message does not say
            which.
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
        """Return a message for clients: paths start at the served folder, not at the root."""
        for folder in dict.fromkeys((str(self.workspace.resolve()), str(self.workspace.absolute()))):
            text = text.replace(folder.rstrip("/") + "/", "").replace(folder, ".")
        return text

    def _model(self, name: str | None, default: str | None, role: str, variable: str) -> str | None:
        if name is None or name == default or name in self.models:
            return default if name is None else name
        raise UsageError(
            f"a request cannot use the {role} '{name}': start the server with --judge {role.upper()}, or {variable}"
        )


def is_suite(path: Path) -> bool:
    """Return whether a file has the keys of a suite; it is validated when it is read."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return False
        text = path.read_bytes()
    except OSError:  # gone, or not ours to read
        return False
    return all(key.search(text) for key in _KEYS)
