"""`Manner`: how a metric asks, which is known before there is a conversation to ask about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vivavoce.metrics.config import Scope
from vivavoce.metrics.transcript import Shown


@dataclass(frozen=True, slots=True)
class Manner:
    """How a metric asks: about which part of a conversation, what of it is shown, and with which settings.

    `calls` is how many calls one question takes, where each of them is answered; `JudgingOptions` has the others.
    """

    shown: Shown
    scope: Scope
    window: int
    tokens: int
    overlap: int
    settings: Mapping[str, Any]
    trial: int
    calls: int = 1
