"""What a target raised, as its fault: the code of users and of their frameworks raises what it likes."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path
from types import TracebackType

from vivavoce.errors import TargetFault
from vivavoce.records.score import EVIDENCE_LIMIT

_OURS = str(Path(__file__).parents[1])


def crash_of(name: str, error: BaseException, *, hint: str = "", so_far: str = "") -> TargetFault:
    """Return what the target called `name` raised as its fault.

    The evidence is the traceback within its own code, below the words of a reply that came `so_far`.
    """
    act = "cancelled itself" if isinstance(error, asyncio.CancelledError) else f"raised {type(error).__name__}"
    said = f"{name} {act}{' in the middle of its reply' if so_far else ''}: {error}".removesuffix(": ")
    said = said.removesuffix(".") if hint else said
    frames = error.__traceback__
    while frames is not None and _is_ours(frames):
        frames = frames.tb_next
    evidence = "".join(traceback.format_exception(type(error), error, frames))
    came = f"what had come: {so_far[: EVIDENCE_LIMIT // 2]}\n\n" if so_far else ""
    evidence = came + evidence[len(came) - EVIDENCE_LIMIT :]
    return TargetFault(f"{said}{hint}", kind="crash", evidence=evidence)


def was_raised_here(error: BaseException) -> bool:
    """Return whether our own code raised an error, as it does where an object has not what it is asked for."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    return frames is not None and _is_ours(frames)


def _is_ours(frame: TracebackType) -> bool:
    return frame.tb_frame.f_code.co_filename.startswith(_OURS)
