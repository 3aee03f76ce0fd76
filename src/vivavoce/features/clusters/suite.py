"""A suite of the conversations of one cluster, so that a cause is tested by itself."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from vivavoce.features.clusters.finding import ClusterResult
from vivavoce.files.plain_yaml import yaml_text
from vivavoce.plugins import is_file_reference
from vivavoce.records.run import Grading, Run
from vivavoce.samples.row import PATHS
from vivavoce.store.store import Store

_OF_FILE = ("format", "fields", "version", "rows")
_OF_CHOICE = ("max_samples", "sample_tags", "output")
"""What chose among the rows of the run, or named the place of its results."""


@dataclass(frozen=True, slots=True)
class ClusterSuite:
    """The text of a suite and of its dataset, with the names of their files, which stand side by side."""

    name: str
    suite: str
    rows: str
    samples: int

    @property
    def files(self) -> Mapping[str, str]:
        """The text of each file by its name."""
        return {f"{self.name}.yaml": self.suite, f"{self.name}.jsonl": self.rows}


def cluster_suite(
    store: Store, graded: tuple[Run, Grading], result: ClusterResult, name: str, to: Path | None
) -> ClusterSuite:
    """Return the suite of a run with only the samples of a cluster, as they were asked, and the graders of the scores.

    `to` is the folder for it: paths in the suite are rewritten so that they begin there. Without it they are left
    as they are, and the files belong into the folder of the suite of the run.

    Raises:
        NotFound: there is no such cluster.
    """
    run, grading = graded
    cluster = result.cluster(name)
    base = Path(run.base)
    rows: dict[str, dict[str, Any]] = {}
    for sample in dict.fromkeys(key.sample_id for key in result.members[cluster.id]):
        attempt = next(iter(store.attempts(run.id, sample_id=sample)))
        row: dict[str, Any] = json.loads(attempt.sample)
        rows[sample] = _rebased_row(row, base, to)
    file = f"cluster-{cluster.id}"
    spec: dict[str, Any] = {key: value for key, value in {**run.spec, **grading.spec}.items() if key not in _OF_CHOICE}
    dataset = cast("dict[str, Any]", spec.get("dataset") or {})
    options = {key: value for key, value in dataset.items() if key not in _OF_FILE}
    spec = cast("dict[str, Any]", _rebase({**spec, "dataset": {}}, base, to))
    spec["dataset"] = {**cast("dict[str, Any]", _rebase(options, base, to)), "path": f"{file}.jsonl"}
    spec["name"] = f"{run.suite} cluster {cluster.id}"
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows.values()]
    return ClusterSuite(file, yaml_text(spec), "".join(lines), len(rows))


def _rebase(value: object, base: Path, to: Path | None, key: str = "") -> object:
    if isinstance(value, dict):
        return {name: _rebase(member, base, to, name) for name, member in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_rebase(member, base, to, key) for member in cast("list[object]", value)]
    if not isinstance(value, str) or to is None or "\n" in value:
        return value
    if is_file_reference(value):
        file, _, name = value.rpartition(":")
        return f"{_move_path(file, base, to)}:{name}"
    is_path = key in ("path", "setup_script") or key.endswith(("_path", "_file"))
    return _move_path(value, base, to) if is_path and (base / value).exists() else value


def _rebased_row(row: Mapping[str, Any], base: Path, to: Path | None) -> dict[str, Any]:
    return {
        name: _move_path(value, base, to)
        if to is not None and name in PATHS and isinstance(value, str) and value
        else value
        for name, value in row.items()
    }


def _move_path(path: str, base: Path, to: Path) -> str:
    """Return a path that begins at one folder as one that begins at another."""
    return Path(os.path.relpath((base / path).resolve(), to.resolve())).as_posix()
