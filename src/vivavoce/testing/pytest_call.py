"""`PytestCall`: what one call of pytest has of ours, and what it leaves at its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from pkgutil import resolve_name  # `vivavoce.plugins` would cost every call of pytest more than all else here
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from vivavoce.errors import Fault
    from vivavoce.testing.session import SharedSession

YAML = (".yaml", ".yml")
TOKEN, USED_KEYS, LEFT_OUT = "viva_token", "viva_used_replies", "viva_left_out"
"""What a worker of pytest-xdist gets, and what it gives back."""


class PytestCall:
    """What one call of pytest has of ours: the session once something needs it, the runs, what to say at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        worker_input = cast("Mapping[str, str]", getattr(config, "workerinput", {}))
        self.is_worker = TOKEN in worker_input
        self.token = worker_input.get(TOKEN) or os.urandom(3).hex()
        self.shared: SharedSession | None = None
        self.runs: dict[str, str] = {}
        self.started_suites: dict[str, None] = {}
        self.left_out: dict[str, None] = {}
        self.used: set[str] = set()
        self.lines: list[str] = []
        self.problems: list[str] = []

    def session(self) -> SharedSession:
        """Return what all tests share."""
        if self.shared is None:
            values = {f"{name}_name": self._value(f"viva_{name}") for name in ("store", "judge", "tester", "target")}
            cassette = self._cassette()
            self.shared = cast(
                "SharedSession",
                resolve_name("vivavoce.testing.session:SharedSession")(
                    token=self.token,
                    base=self.config.rootpath,
                    cassette=cassette,
                    records=bool(self.config.getoption("viva_record")),
                    **values,
                ),
            )
        return self.shared

    def _cassette(self) -> Path | None:
        file_name = cast("str | None", self.config.getoption("viva_cassette"))
        if file_name:
            return self.config.invocation_params.dir / file_name
        from_file = self._value("viva_cassette")
        return self.config.rootpath / from_file if from_file else None

    def _value(self, name: str) -> str:
        return cast("str", self.config.getini(name)) or ""

    @pytest.hookimpl
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note the suites that were begun: a run that is interrupted has no report."""
        file = nodeid.partition("::")[0]
        if file.endswith(YAML):
            self.started_suites[file] = None

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the runs that tests made or added to, those of workers as well, and the stores of those elsewhere."""
        noted = {name: str(value) for name, value in report.user_properties if name.startswith("viva_store_")}
        runs = [str(value) for name, value in report.user_properties if name == "viva_run"]
        if runs:
            self.runs.update({run_id: noted.get(f"viva_store_{run_id}", "") for run_id in runs})
            self.started_suites.pop(report.nodeid.partition("::")[0], None)

    @pytest.hookimpl
    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[object]) -> None:
        """Note what broke in a test: pytest, and JUnit, know it as a failure like any other."""
        fault = cast("type[Fault]", resolve_name("vivavoce.errors:Fault"))
        error = None if call.excinfo is None else call.excinfo.value
        if isinstance(node, pytest.Item) and isinstance(error, fault):
            node.user_properties.append(("viva_fault", f"{error.blame}.{error.kind}"))

    @pytest.hookimpl
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Finish, and let the call fail where something cannot be written."""
        self.finish()
        if self.problems and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what came of the runs."""
        if self.lines or self.problems:
            terminalreporter.write_sep("=", "viva")
        for line in self.lines:
            terminalreporter.write_line(line)
        for problem in self.problems:
            terminalreporter.write_line(f"ERROR {problem}", red=True)

    @pytest.hookimpl
    def pytest_unconfigure(self) -> None:
        """Close what was opened."""
        if self.shared is not None:
            self.shared.close()

    def check(self) -> None:
        """Check the options.

        Raises:
            pytest.UsageError: they do not go together, or name something unknown.
        """
        report = cast("str | None", self.config.getoption("viva_report"))
        wrong = report and resolve_name("vivavoce.testing.reports:wrong_suffix")(Path(report))
        if wrong:
            raise pytest.UsageError(wrong)
        if self.config.getoption("viva_record") and self._cassette() is None:
            raise pytest.UsageError(
                "--viva-record needs a cassette: add --viva-cassette FILE, or set viva_cassette in "
                "[tool.pytest.ini_options]"
            )

    def finish(self) -> None:
        """Summarise and write what the tests left; what cannot be written is a problem, and loses nothing else."""
        if self.is_worker:
            output = cast("MutableMapping[str, Any]", vars(self.config)["workeroutput"])
            output[LEFT_OUT] = list(self.left_out)
            output[USED_KEYS] = [] if self.shared is None else self.shared.used_replies()
            return
        self.lines += [
            f"not collected: {path}; name it (pytest {path}), or call it NAME.viva.yaml" for path in self.left_out
        ]
        if self.shared is not None:
            self.used.update(self.shared.used_replies())
        steps: list[Callable[[], object]] = [
            self._find_runs,
            self._finish_run,
            self._write_cassette,
            self._write_reports,
        ]
        for step in steps:
            try:
                step()
            except Exception as error:
                self.problems.append(f"{type(error).__name__}: {error}")

    def _find_runs(self) -> None:
        if self.started_suites:
            suites = [self.config.rootpath / file for file in self.started_suites]
            run_ids = resolve_name("vivavoce.testing.suite_run:runs_of")(self.session(), suites)
            self.runs.update(dict.fromkeys(run_ids, ""))

    def _finish_run(self) -> None:
        asserted = self.shared is not None and self.shared.has_assertions
        if asserted or any(run_id.startswith("pytest-") for run_id in self.runs):
            run = self.session().assertions.finish()
            self.runs.update({} if run is None else {run.id: ""})
        if self.runs:
            self.lines += resolve_name("vivavoce.testing.reports:summary_lines")(self.session(), self.runs)

    def _write_cassette(self) -> None:
        if self.used:
            session = self.session()
            number = session.write_cassette(self.used)
            self.lines.append(f"wrote {os.path.relpath(str(session.cassette))}: answers of judges: {number:,}")

    def _write_reports(self) -> None:
        report = cast("str | None", self.config.getoption("viva_report"))
        if report and self.runs:
            self.lines += resolve_name("vivavoce.testing.reports:write_reports")(
                self.session(), self.runs, Path(report)
            )
