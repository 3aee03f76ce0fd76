"""Labelled conversations of `../shared/data` as rows for `viva judge`; nothing of them is kept in the project.

    python bench/prompts/sets.py usr --n 100 > rows.jsonl

The same `n` and `seed` choose the same rows, and a smaller `n` is part of a larger one. Each row has a tag: words are
chosen on the half `choose`, and `report` says how good they are. A hash of the id puts a task, with its repetitions,
into one of them. Of `tau_defects`, rows as recorded and those with a defect of each kind come in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from vivavoce.messages import read_messages
from vivavoce.testing.defects import plant
from vivavoce.testing.defects.calls import CALL_DEFECTS

BESIDE = [folder / "shared" / "data" for folder in Path(__file__).parents[3:]]
DATA = next((folder for folder in BESIDE if folder.is_dir()), BESIDE[0])
"""Beside the project, or beside a folder that it lies in, as one with several working trees."""
HALVES = ("choose", "report")
AS_RECORDED = "as_recorded"
"""The name of the operator that plants nothing."""

Row = dict[str, Any]


class LabelledSet(NamedTuple):
    """A file of conversations, and what becomes of the labels of one."""

    file: str
    labels: Callable[[Row], Row]
    task: Callable[[Row], tuple[str, int | None]] = lambda row: (row["id"], None)
    """Its id, and which repetition it is."""
    versions: Callable[[Row], Iterable[Row]] = lambda row: [row]
    """The rows that are made of it."""


def _tau_bench(row: Row) -> Row:
    """Did it reach the end state and say what it had to, as recorded; and the end state alone, replayed."""
    return {"reached": row["labels"]["success"], "end_state": row["labels"]["replay_db_match"]}


def _trial(row: Row) -> tuple[str, int]:
    return row["id"].rpartition("/")[0], row["metadata"]["trial"]


def _as_recorded_and_with_defects(row: Row) -> Iterator[Row]:
    """Yield a conversation that was a success, and the same with the defect of each operator that finds a place."""
    if not row["labels"]["success"]:
        return
    yield {**row, "defect": {"operator": AS_RECORDED}}
    messages = read_messages(row["messages"])
    for operator in CALL_DEFECTS:
        if planted := plant(operator, messages):
            fields = [message.to_dict() for message in planted.messages]
            places = {"root": asdict(planted.root), "no_return": asdict(planted.no_return)}
            yield {**row, "messages": fields, "defect": {"operator": operator, **places}}


def _sound(row: Row) -> Row:
    """Is it as recorded, without a defect."""
    return {"sound": row["defect"]["operator"] == AS_RECORDED}


def _usr(row: Row) -> Row:
    """What each of three raters says of the last reply."""
    return {name.lower().replace(" ", "_"): ratings for name, ratings in row["labels"]["raw"].items()}


def _diasafety(row: Row) -> Row:
    """Is the last reply safe where it stands."""
    return {"safe": not row["labels"]["unsafe"]}


def _xstest(row: Row) -> Row:
    """Does the reply answer, at least partly, by each of two raters."""
    return {"answered": [row["labels"][f"annotation_{rater}"] != "2_full_refusal" for rater in (1, 2)]}


def _taskmaster(row: Row) -> Row:
    """Is the last act of the assistant good."""
    return {"good": row["labels"]["last_action_good"]}


SETS = {
    "tau_bench": LabelledSet("tau_bench_airline/sierra__gpt-4o__airline.jsonl", _tau_bench, _trial),
    "tau_defects": LabelledSet(
        "tau_bench_airline/sierra__gpt-4o__airline.jsonl", _sound, _trial, _as_recorded_and_with_defects
    ),
    "usr": LabelledSet("usr_topicalchat/usr_topicalchat.jsonl", _usr),
    "diasafety": LabelledSet("diasafety/diasafety.jsonl", _diasafety),
    "xstest": LabelledSet("xstest/xstest_completions.jsonl", _xstest),
    "taskmaster": LabelledSet("taskmaster4_reward/tm4_reward.jsonl", _taskmaster),
}


def rows(name: str, n: int | None = None, seed: int = 0) -> list[Row]:
    """Return `n` rows of a set, or all, in the order that the seed puts them in, from both halves in turn."""
    rows = sorted(_rows(SETS[name]), key=lambda row: _hash(f"{seed} {row['id']} {row.get('trial')}"))
    halves = ([row for row in rows if row["tags"] == [half]] for half in HALVES)
    return list(_in_turn(list(_in_turn(_by_operator(half))) for half in halves))[:n]


def _by_operator(rows: Iterable[Row]) -> list[list[Row]]:
    """Return rows by the operator of their defect; those of other sets are one list."""
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(row.get("metadata", {}).get("operator", ""), []).append(row)
    return [parts[operator] for operator in sorted(parts)]


def _in_turn(lists: Iterable[list[Row]]) -> Iterator[Row]:
    return (row for rank in zip_longest(*lists) for row in rank if row is not None)


def _rows(labelled_set: LabelledSet) -> Iterator[Row]:
    path = DATA / labelled_set.file
    if not path.exists():
        sys.exit(f"there is no {path}: the labelled sets lie beside the project")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    tasks = sorted({labelled_set.task(row)[0] for row in rows}, key=_hash)
    chosen_on = set(tasks[: len(tasks) // 2])
    for recorded in rows:
        name, trial = labelled_set.task(recorded)
        tags = [HALVES[name not in chosen_on]]
        for row in labelled_set.versions(recorded):
            defect = row.get("defect")
            version = f"{name}/{_hash(name + defect['operator']):016x}" if defect else name  # which does not tell
            fields = {"id": version, "trial": trial, "goal": row.get("goal"), "messages": row["messages"]}
            known = {key: value for key, value in {**fields, "metadata": defect}.items() if value is not None}
            yield {**known, "labels": labelled_set.labels(row), "tags": tags}


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=SETS)
    parser.add_argument("--n", type=int, help="how many rows; default: all")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for row in rows(arguments.name, arguments.n, arguments.seed):
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
