"""What every part of a suite shares: how it is read, and that it holds no secret."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, cast

from pydantic import AfterValidator, ConfigDict, Field

from vivavoce.validation import Written
from vivavoce.wire.http import USER_IN_ADDRESS, holds_user

SECRET = re.compile(
    r"(proxy-)?authorization|cookie|(x[-_])?(api[-_]?key|token|auth[-_]token|access[-_]token|secret)|password", re.I
)
"""Names of headers and settings that contain keys."""


ELSEWHERE = frozenset(("model", "models", "base_url", "api_base", "api_key_env", "max_retries", "request_timeout"))
"""Settings that would choose another model or address than the one that is named, priced and stored, or its retries."""

_NESTED = ("extra_body", "extra_headers")


def _check_settings(settings: dict[str, Any]) -> dict[str, Any]:
    for place, part in [("", settings), *((f"{name}.", settings.get(name)) for name in _NESTED)]:
        if part is None:
            continue
        if not isinstance(part, dict):
            raise ValueError(f"{place.rstrip('.')} needs a mapping, got {type(part).__name__}")
        for name in cast("dict[str, Any]", part):
            if SECRET.fullmatch(name):
                raise ValueError(
                    f"{place}{name} is an API key, which would be stored; set it in the environment and name "
                    "the variable with api_key_env"
                )
            if name in ELSEWHERE:
                raise ValueError(
                    f"{place}{name} cannot be set here; it would change which model answers or how often it is asked"
                )
    return settings


SettingsOfModel = Annotated[dict[str, Any], AfterValidator(_check_settings)]


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
