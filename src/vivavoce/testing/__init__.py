"""For tests: `viva_assert`, `check_metric`, a scripted model, and a server on this machine.

The server answers, or misbehaves, as prepared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vivavoce.lazy_names import lazy_names

if TYPE_CHECKING:
    from vivavoce.testing.asserting import viva_assert as viva_assert
    from vivavoce.testing.batch_server import BatchServer as BatchServer
    from vivavoce.testing.loopback import LoopbackServer as LoopbackServer
    from vivavoce.testing.metric_check import check_metric as check_metric
    from vivavoce.testing.prefix_cache import PrefixCache as PrefixCache
    from vivavoce.testing.scripted import ScriptedModel as ScriptedModel
    from vivavoce.testing.talking_target import TalkingTarget as TalkingTarget


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".asserting": ("viva_assert",),
        ".batch_server": ("BatchServer",),
        ".loopback": ("LoopbackServer",),
        ".metric_check": ("check_metric",),
        ".prefix_cache": ("PrefixCache",),
        ".scripted": ("ScriptedModel",),
        ".talking_target": ("TalkingTarget",),
    },
)
