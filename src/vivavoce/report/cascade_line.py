"""The line of a suite that makes a cascade of two of its graders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vivavoce.records.score import Score
from vivavoce.stats.cascade import Thresholds

_OWN = {"model", "api_key_env", "display_name", "threshold", "confirm", "cascade"}
"""Keys in which the first grader may differ from the other, and still be the same metric under another model."""
_ALONE = {"confirm", "cascade"}
"""Keys of a procedure that a cascade cannot ask first."""
_METRIC = {"kind", "metric", "function", "config", *_OWN}


def cascade_line(
    spec: Mapping[str, Any], first: str, then: str, scores: Sequence[Score], thresholds: Thresholds
) -> str | None:
    """Return what to write into a suite under the grader `then`; None where a suite cannot say it.

    `spec` is the suite as data; `scores` of the first grader name its judge where the suite does not.
    """
    graders: Mapping[str, Any] = spec.get("graders") or {}
    cheap, dear = _given(graders.get(first)), _given(graders.get(then))
    if cheap is None or dear is None or dear.keys() & _ALONE or cheap.keys() & _ALONE:
        return None
    judge = cheap.get("model") or next((one.settings["model"] for one in scores if "model" in one.settings), None)
    if _without(cheap, _OWN) == _without(dear, _OWN) and judge is not None:
        asked: dict[str, Any] = {"model": judge}
    elif (name := cheap.get("metric") or cheap.get("function")) and cheap.keys() <= _METRIC:
        asked = {"metric": name}
        asked |= {"config": cheap["config"]} if cheap.get("config") else {}
        asked |= {"model": judge} if judge is not None else {}
    else:
        return None
    fails, passes = thresholds.fails_below, thresholds.passes_from
    limits = {"fails_below": fails, "passes_from": passes}
    keys = {**asked, **{key: value for key, value in limits.items() if value is not None}}
    return (
        "cascade: {" + ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()) + "}"
    )


def _given(spec: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the keys of a grader that say something; a suite that is kept as data has those left out, too."""
    return None if spec is None else {key: value for key, value in spec.items() if value not in (None, {}, [])}


def _without(spec: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in keys}
