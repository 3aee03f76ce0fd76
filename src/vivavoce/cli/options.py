"""Options that several commands share, amounts that people write in them, and files with keys."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import typer

from vivavoce.cli import RUN
from vivavoce.errors import Problem, UsageError


def _amount(usd: float | None) -> float | None:
    if usd is not None and not math.isfinite(usd):
        raise UsageError(f"--max-cost: expected an amount in US dollars, got {usd}")
    return usd


ConversationArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN/SAMPLE",
        help="A conversation: a run or 'latest', a slash, and a sample, or SAMPLE#2 for its second trial.",
        show_default=False,
    ),
]
TargetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help="A target that replaces the suite's own: file.py:function or http://host/v1#MODEL; repeat for more.",
    ),
]
TableOption = Annotated[
    bool, typer.Option("--table", help="Also print all samples: their scores by target, or by grader if there is one.")
]
CostOption = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        min=0,
        callback=_amount,
        help="Maximum cost of model calls, without the target, in US dollars.",
    ),
]


MaxErrorsOption = Annotated[
    str | None,
    typer.Option(
        "--max-errors",
        metavar="N|N%",
        help="Maximum number of conversations with an error; with more, the result is inconclusive. Default "
        "without a gate: 0.",
    ),
]
NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Do not use cached judge answers, and do not cache new ones.")
]
ReplayOption = Annotated[bool, typer.Option("--replay", help="Call no judge; use only cached answers.")]
BaselineOption = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help="Compare with this file from viva export --format baseline: exit with 1 if worse, 3 if undecided.",
    ),
]
SmallestEffectOption = Annotated[
    float | None,
    typer.Option(
        "--smallest-effect",
        metavar="LOSS",
        min=0,
        max=1,
        help="The smallest drop of a mean score, 0 to 1, that counts as worse; default: any significant drop.",
    ),
]
FailOnBreakOption = Annotated[
    bool,
    typer.Option(
        "--fail-on-break",
        help="Also count a sample as worse if all its trials passed before and none passes in this run.",
    ),
]


def named_paths(options: list[str]) -> dict[str, str]:
    """Return what `--field goal=metadata.wish` says, by the names of the fields.

    Raises:
        UsageError: an option names no place.
    """
    fields: dict[str, str] = {}
    for option in options:
        name, _, path = option.partition("=")
        if not path:
            raise UsageError(f"--field {option}: write it as goal=metadata.wish")
        fields[name] = path
    return fields


SuitesArgument = Annotated[
    list[Path] | None, typer.Argument(metavar="SUITE", help="Suites: YAML files.", show_default=False)
]
SampleOption = Annotated[
    list[str] | None,
    typer.Option(help="Only the samples with this id, or a pattern such as 'total-*'; repeat for more."),
]
FailedOption = Annotated[
    str | None,
    typer.Option(metavar=RUN, help="Rerun only the samples that failed or had an error in a run; default: the latest."),
]
WatchOption = Annotated[bool, typer.Option("--watch", help="Watch the files of the suite, and rerun what changed.")]
ResumeOption = Annotated[
    str | None,
    typer.Option(metavar=RUN, help="Continue a run, by default the latest: run only what is not done yet."),
]
EnvFileOption = Annotated[
    Path | None,
    typer.Option(
        "--env-file",
        help="Read variables from this file of NAME=value lines; variables that are already set keep their values.",
    ),
]
ModelHandleOption = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Override the model of the suite's targets, on Letta or an endpoint."),
]
BaseUrlOption = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Override the address of the suite's targets.")
]
ApiKeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key", metavar="KEY", help="The key of a Letta server; prefer LETTA_API_KEY.", show_default=False
    ),
]
RecordingOption = Annotated[
    Path | None,
    typer.Option(
        "--recording",
        metavar="FILE",
        help="Test a new release offline: answer its tools from this recording (viva export --format recordings) and "
        "compare each conversation with it, turn by turn. A call that is not in it is an error.",
    ),
]
LiveOption = Annotated[
    list[str] | None,
    typer.Option(
        "--live",
        metavar="NAME",
        help="With --recording: a tool to call for real, or a target that calls its own tools; repeat for more.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Also write result files in the letta-evals layout to this folder."),
]
CallsOption = Annotated[int | None, typer.Option(min=0, help="Maximum number of target messages plus judge calls.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Check everything and count the calls without making any.")
]
TrialsOption = Annotated[int | None, typer.Option(min=1, help="Number of trials per sample; gives pass@k and pass^k.")]


PartsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Run in parts: write the results of each to this folder or address (s3://…) as Parquet. Repeat the "
        "command to continue after an interruption; viva runs merge FOLDER merges the parts into one run.",
    ),
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        metavar="2/8",
        help="With --parts: which share of the parts to run; 2/8 is every eighth part, starting with the second.",
    ),
]
EngineOption = Annotated[Literal["ray"] | None, typer.Option(help="With --parts: run the parts on a Ray cluster.")]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="With --engine ray: number of processes; default: one per processor.")
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="ADDRESS",
        help="With --engine ray: the address of the cluster; default: one on this machine.",
    ),
]


@dataclass(frozen=True, slots=True)
class InParts:
    """How to work in parts: where the results go, which parts, and who works on them."""

    folder: str
    shard: tuple[int, int] | None = None
    ray: bool = False
    workers: int | None = None
    address: str | None = None

    @property
    def name(self) -> str:
        """The name of the folder."""
        return PurePosixPath(self.folder.partition("?")[0]).name

    @classmethod
    def read(
        cls, parts: str | None, shard: str | None, engine: str | None, workers: int | None, address: str | None
    ) -> InParts | None:
        """Return what the options say, None where the work is done in one piece.

        Raises:
            UsageError: they do not go together.
        """
        given = {"--shard": shard, "--engine": engine, "--workers": workers, "--ray-address": address}
        named = [name for name, value in given.items() if value is not None]
        if parts is None:
            if named:
                raise UsageError(f"{named[0]} needs --parts FOLDER for the results")
            return None
        if engine is None and (of_ray := [name for name in named if name in ("--workers", "--ray-address")]):
            raise UsageError(f"{of_ray[0]} needs --engine ray")
        if engine is not None and shard is not None:
            raise UsageError("--shard and --engine cannot be combined: Ray distributes all parts")
        return cls(parts, None if shard is None else _shard(shard), engine is not None, workers, address)


def check_alone(how: InParts | None, *others: Mapping[str, object]) -> None:
    """Refuse what does not go together with parts.

    Raises:
        UsageError: something is given that does not.
    """
    if how is not None and (named := [name for one in others for name, value in one.items() if value]):
        raise UsageError(f"--parts and {named[0]} cannot be combined")


def _shard(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    number, of = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= of:
        raise UsageError(f"--shard needs PART/TOTAL, such as 2/8; got '{text}'")
    return number, of


_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z%]*)")
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SHARES = {"": 1, "%": 0.01}


def seconds(option: str, text: str) -> float:
    """Return a time in seconds, such as 90, 60s, 5m, 1h or 2d.

    Raises:
        UsageError: the text cannot be read.
    """
    return _read_amount(option, text, _SECONDS, "a time such as 60s, 5m or 1h")


def size(option: str, text: str) -> int:
    """Return a size in bytes, such as 500MB or 2GB.

    Raises:
        UsageError: the text cannot be read.
    """
    return int(_read_amount(option, text, _BYTES, "a size such as 500MB or 2GB"))


def share(option: str, text: str) -> float:
    """Return a share from 0 to 1, such as 10% or 0.1.

    Raises:
        UsageError: the text cannot be read.
    """
    found = _read_amount(option, text, _SHARES, "a share like 10% or 0.1")
    if found > 1:
        raise UsageError(f"{option} is a share such as 10% or 0.1, got '{text}', which is more than 100%")
    return found


def _read_amount(option: str, text: str, units: Mapping[str, float], what: str) -> float:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2] not in units or not math.isfinite(float(found[1])):
        raise UsageError(f"{option} needs {what}, got '{text}'")
    return float(found[1]) * units[found[2]]


_LINE = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)", re.ASCII)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)\"""")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def load_env_file(path: Path) -> None:
    """Put the variables of a file into the environment; one that is set there already stays as it is.

    Raises:
        UsageError: the file cannot be read, or a line of it is not `NAME=value`.
    """
    for name, value in read_env_file(path).items():
        os.environ.setdefault(name, value)


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of a file with a `NAME=value` on each line; values may be quoted, `#` begins a comment.

    Raises:
        UsageError: the file cannot be read, or a line of it is something else; values are never shown.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"--env-file: {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--env-file: {path} is not UTF-8") from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        read = _LINE.fullmatch(stripped)
        value = None if read is None else _value(read[2])
        if read is None or value is None or "\0" in value:
            rule = 'is not NAME=value; put a value with spaces or # in quotes: NAME="…"'
            raise UsageError(Problem(rule, path, number))
        found[read[1]] = value
    return found


def _value(text: str) -> str | None:
    """Return a value without its quotes and without the comment after it; None if a quote has no end."""
    if text[:1] not in ("'", '"'):
        return re.split(r"(?:^|\s+)#", text, maxsplit=1)[0].strip()
    found = _QUOTED.match(text)
    if found is None or not re.fullmatch(r"\s*(#.*)?", text[found.end() :]):
        return None
    if found[1] is not None:
        return found[1]
    return re.sub(r"\\(.)", lambda escaped: _ESCAPED.get(escaped[1], escaped[1]), found[2])
