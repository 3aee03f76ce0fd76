"""What every part of a suite shares: how it is read, and that it holds no secret."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from vivavoce.wire.http import USER_IN_ADDRESS, holds_user
from vivavoce.written import Written

SECRET = re.compile(
    r"(proxy-)?authorization|cookie|(x[-_])?(api[-_]?key|token|auth[-_]token|access[-_]token|secret)|password", re.I
)
"""Names of headers and settings that contain keys."""


def _without_keys(settings: dict[str, Any]) -> dict[str, Any]:
    for name in settings:
        if SECRET.fullmatch(name):
            raise ValueError(
                f"{name} is an API key, which would be stored; set it in the environment and name "
                "the variable with api_key_env"
            )
    return settings


SettingsOfModel = Annotated[dict[str, Any], AfterValidator(_without_keys)]


def _without_user(address: str) -> str:
    if holds_user(address):
        raise ValueError(USER_IN_ADDRESS)
    return address


Address = Annotated[str, AfterValidator(_without_user)]
"""A web address without a secret, because a suite is stored with its run."""


class Spec(Written):
    """A part of a suite: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _can_fail(threshold: float | None) -> float | None:
    if threshold == 0:
        raise ValueError("with 0 every score passes; write a number above 0, or leave threshold out")
    return threshold


PassingThreshold = Annotated[float | None, Field(ge=0, le=1), AfterValidator(_can_fail)]
"""The lowest score, above 0 and up to 1, that passes; None for the default."""


def check_weights(weights: dict[str, float]) -> dict[str, float]:
    """Return weights that are finite numbers, not negative and not all 0, with a finite sum."""
    if not math.isfinite(sum(weights.values())):
        raise ValueError("weights must be finite numbers; got " + ", ".join(f"{k}: {v:g}" for k, v in weights.items()))
    if any(weight < 0 for weight in weights.values()) or not sum(weights.values()):
        raise ValueError("weights must be 0 or more, and not all 0")
    return weights
