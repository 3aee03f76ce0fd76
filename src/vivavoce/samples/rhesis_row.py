"""A test of a test set of Rhesis, as its JSON, JSONL and CSV files have it, read as a row of ours.

| there | here |
|---|---|
| `prompt.content`, `prompt_content` | `input` |
| `prompt.expected_response`, `expected_response` | `ground_truth` |
| `test_configuration`, or its keys beside the others | `goal`, `instructions`, `scenario`, `min_turns`, `max_turns` |
| `restrictions` in it, what the target must not do, a line each | `must_not` |

Everything else, such as `category`, `topic` and `behavior`, stays where it is and so becomes metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

_TYPES = ("Single-Turn", "Multi-Turn")
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d+[.)])\s+")


def is_test(row: Mapping[str, Any]) -> bool:
    """Say whether a row is a test of Rhesis."""
    prompt = row.get("prompt")
    return (
        row.get("test_type") in _TYPES
        or isinstance(row.get("test_configuration"), Mapping)
        or (isinstance(prompt, Mapping) and "content" in prompt)
        or "prompt_content" in row
    )


def as_row(test: Mapping[str, Any], *, cells: bool) -> dict[str, Any]:
    """Return a test as a row of ours; in the `cells` of a table the rules are JSON text."""
    prompt = _filled(test.get("prompt"))
    row = {**_filled(test), **_filled(test.get("test_configuration"))}
    if prompt:
        del row["prompt"]
    row |= prompt
    row.pop("test_configuration", None)
    named = {"content": "input", "prompt_content": "input", "expected_response": "ground_truth"}
    row = {named.get(key, key): value for key, value in row.items()}
    if isinstance(restrictions := row.pop("restrictions", None), str):
        rules = [rule for line in restrictions.splitlines() if (rule := _BULLET.sub("", line).strip())]
        row["must_not"] = json.dumps(rules) if cells else rules
    elif restrictions is not None:
        row["must_not"] = restrictions
    return row


def _filled(value: object) -> dict[str, Any]:
    """Return what a mapping holds, without what is empty; nothing of anything else."""
    if not isinstance(value, Mapping):
        return {}
    items = cast("Mapping[str, Any]", value).items()
    return {key: one for key, one in items if one is not None and one != ""}
