"""For tests: `viva_assert`, `check_metric`, a scripted model, and a server on this machine.

The server answers, or misbehaves, as prepared.
"""

from __future__ import annotations

from pkgutil import resolve_name  # `vivavoce.plugins` would cost every call of pytest more than all else here
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vivavoce.testing.asserting import viva_assert as viva_assert
    from vivavoce.testing.batch_server import BatchServer as BatchServer
    from vivavoce.testing.loopback import LoopbackServer as LoopbackServer
    from vivavoce.testing.metric_check import check_metric as check_metric
    from vivavoce.testing.prefix_cache import PrefixCache as PrefixCache
    from vivavoce.testing.scripted import ScriptedModel as ScriptedModel
    from vivavoce.testing.talking_target import TalkingTarget as TalkingTarget

_LAZY = {
    "BatchServer": "vivavoce.testing.batch_server:BatchServer",
    "LoopbackServer": "vivavoce.testing.loopback:LoopbackServer",
    "PrefixCache": "vivavoce.testing.prefix_cache:PrefixCache",
    "ScriptedModel": "vivavoce.testing.scripted:ScriptedModel",
    "TalkingTarget": "vivavoce.testing.talking_target:TalkingTarget",
    "check_metric": "vivavoce.testing.metric_check:check_metric",
    "viva_assert": "vivavoce.testing.asserting:viva_assert",
}
__all__ = [
    "BatchServer",
    "LoopbackServer",
    "PrefixCache",
    "ScriptedModel",
    "TalkingTarget",
    "check_metric",
    "viva_assert",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: the server is costly to import and few need it."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return resolve_name(_LAZY[name])
