"""The options of `viva judge` and `viva run` for working in parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Literal

import typer

from vivavoce.errors import UsageError

PartsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Work in parts: write the results of each into this folder or address (s3://…) as Parquet. The same "
        "command goes on where it stopped; viva runs merge FOLDER makes them one run.",
    ),
]
ShardOption = Annotated[
    str | None, typer.Option(metavar="2/8", help="With --parts: only every eighth part, from the second on.")
]
EngineOption = Annotated[
    Literal["ray"] | None, typer.Option(help="With --parts: work with several processes of a Ray cluster.")
]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="With --engine ray: processes; default: one for each processor.")
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(
        "--ray-address", metavar="ADDRESS", help="With --engine ray: a cluster; default: one on this machine."
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
                raise UsageError(f"{named[0]} needs --parts FOLDER, where the results go")
            return None
        if engine is None and (of_ray := [name for name in named if name in ("--workers", "--ray-address")]):
            raise UsageError(f"{of_ray[0]} needs --engine ray")
        if engine is not None and shard is not None:
            raise UsageError("--shard and --engine do not go together: Ray hands out all parts")
        return cls(parts, None if shard is None else _shard(shard), engine is not None, workers, address)


def check_alone(how: InParts | None, *others: Mapping[str, object]) -> None:
    """Refuse what does not go together with parts.

    Raises:
        UsageError: something is given that does not.
    """
    if how is not None and (named := [name for one in others for name, value in one.items() if value]):
        raise UsageError(f"--parts and {named[0]} do not go together")


def _shard(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    number, of = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= of:
        raise UsageError(f"--shard is a number of how many, such as 2/8; got '{text}'")
    return number, of
