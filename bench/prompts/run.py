"""Exports the requests of a family of prompts, and later says how good their answers are.

    python bench/prompts/run.py export goal FOLDER --n 100
    python bench/prompts/run.py table goal FOLDER answers.jsonl

The folder gets `rows.jsonl` with the labels, which readers must not see, `requests.jsonl`, and the store.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from places import places, read_rows, read_scores
from sets import HALVES, rows

VIVA = Path(sys.executable).with_name("viva")
READER = "openai:reader"
"""The name under which readers answer; it is never called."""
CHARACTERS_PER_TOKEN = 4


class Family(NamedTuple):
    """A metric, the set that it is measured on, and the labels that it should agree with."""

    metric: str
    set_name: str
    labels: tuple[str, ...]


FAMILIES = {
    "goal": Family("goal_achievement", "tau_bench", ("reached", "end_state")),
    "coherence": Family("coherence", "usr", ("overall", "maintains_context")),
    "retention": Family("context_retention", "usr", ("overall", "maintains_context")),
    "quality": Family("response_quality", "usr", ("overall", "engaging", "uses_knowledge")),
    "safety": Family("safety", "diasafety", ("safe",)),
    "toxicity": Family("toxicity", "diasafety", ("safe",)),
    "tools": Family("tool_use", "taskmaster", ("good",)),
    "failure": Family("first_failure", "tau_defects", ("sound",)),
    "refusal": Family("refusal", "xstest", ("answered",)),
}
"""`refusal` is exact: it needs no answers, only `table`."""


def export(family: Family, folder: Path, n: int, seed: int) -> None:
    """Write the rows, and the requests about them that have no answer yet."""
    folder.mkdir(parents=True, exist_ok=True)
    sample = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(family.set_name, n, seed))
    path = folder / "rows.jsonl"
    if path.exists() and path.read_text(encoding="utf-8") != sample:
        sys.exit(f"{path} has other rows; take another folder, or the n and the seed that it was made with")
    path.write_text(sample, encoding="utf-8")
    requests = _free(folder)
    _viva("judge", "rows.jsonl", *_judging(family), "--export-requests", requests.name, folder=folder)
    if requests.exists():
        print(sizes(requests))


def table(family: Family, folder: Path, answers: Path | None) -> None:
    """Import answers, and print a table for each label: on all rows, and on each half."""
    imported = ["--import-responses", str(answers.resolve())] if answers else []
    _viva("judge", "rows.jsonl", *_judging(family), *imported, "--quiet", folder=folder, expected=(0, 3))
    for label in family.labels:
        for tag in (None, *HALVES):
            print(f"\n### {family.metric}, {family.set_name}, {label}, {f'half {tag}' if tag else 'all rows'}\n")
            half = ["--tag", tag] if tag else []
            _viva("labels", "agreement", "latest", "--label", label, *half, folder=folder)
    if family.set_name == "tau_defects":
        _print_places(folder)
    for requests in sorted(folder.glob("requests*.jsonl")):
        print(sizes(requests))


def _print_places(folder: Path) -> None:
    _viva("export", "latest", "--output", "scores.jsonl", folder=folder)
    scores = read_scores((folder / "scores.jsonl").read_text(encoding="utf-8").splitlines())
    rows = read_rows(folder / "rows.jsonl")
    for tag in (None, *HALVES):
        selection = [row for row in rows if tag is None or tag in row["tags"]]
        print(f"\n### Where, {f'half {tag}' if tag else 'all rows'}\n\n{places(selection, scores)}")


def sizes(requests: Path) -> str:
    """Return how many tokens the requests of a file take, at four characters a token, with the schema of the answer."""
    lines = [json.loads(line)["body"] for line in requests.read_text(encoding="utf-8").splitlines()]
    totals = sorted(sum(len(message["content"]) for message in body["messages"]) for body in lines)
    schemas = [len(json.dumps(body.get("response_format", {}))) for body in lines]
    mean, median, most, schema = (
        value / CHARACTERS_PER_TOKEN
        for value in (sum(totals) / len(totals), totals[len(totals) // 2], totals[-1], sum(schemas) / len(schemas))
    )
    spread = f"mean {mean:,.0f}, median {median:,.0f}, most {most:,.0f}, schema {schema:,.0f} more"
    return f"{requests}: {len(lines)} requests; tokens of one: {spread}; all {mean * len(lines):,.0f}"


def _judging(family: Family) -> list[str]:
    return ["--metrics", family.metric, "--judge", READER]


def _free(folder: Path) -> Path:
    """Return a file that is not there: the questions of a second round, where answers led to more, follow the first."""
    later = (folder / f"requests-round-{number}.jsonl" for number in range(2, 100))
    return next(path for path in (folder / "requests.jsonl", *later) if not path.exists())


def _viva(*arguments: str, folder: Path, expected: tuple[int, ...] = (0,)) -> None:
    """Run a command in a folder; its exit code 3 says that some conversations have no score."""
    sys.stdout.flush()
    done = subprocess.run([VIVA, *arguments], cwd=folder)
    if done.returncode not in expected:
        sys.exit(done.returncode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("export", "table"):
        command = commands.add_parser(name)
        command.add_argument("family", choices=FAMILIES)
        command.add_argument("folder", type=Path)
    commands.choices["export"].add_argument("--n", type=int, default=100)
    commands.choices["export"].add_argument("--seed", type=int, default=0)
    commands.choices["table"].add_argument("answers", type=Path, nargs="?")
    arguments = parser.parse_args()
    family = FAMILIES[arguments.family]
    if arguments.command == "export":
        export(family, arguments.folder, arguments.n, arguments.seed)
    else:
        table(family, arguments.folder, arguments.answers)


if __name__ == "__main__":
    main()
