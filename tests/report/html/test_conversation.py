"""What changed in the state of a row, and what was expected of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from server.pages.cases import outcome
from vivavoce.records.run import Attempt
from vivavoce.report.html.conversation import state_changes


def build_attempt(after: Any, **row: Any) -> Attempt:
    attempt = outcome("one", state=after).attempt
    return attempt.model_copy(update={"sample": json.dumps({"id": "one", **row})})


BEFORE = {"orders": {"A-17": {"status": "sent", "price": 40}}, "notes": ["a", "b"]}


@pytest.mark.parametrize(
    ("after", "row", "expected"),
    [
        (BEFORE, {"state": BEFORE}, []),
        (None, {"state": BEFORE}, []),
        ({"memory": "x"}, {}, []),
        (
            {"orders": {"A-17": {"status": "refunded", "price": 40}}, "notes": ["a"]},
            {"state": BEFORE},
            [("orders.A-17.status", ("sent",), ("refunded",), None, None), ("notes.1", ("b",), None, None, None)],
        ),
        (
            BEFORE,
            {"state": BEFORE, "expect": {"all": [{"state": {"orders.A-17.status": "refunded"}}, {"contains": "x"}]}},
            [("orders.A-17.status", ("sent",), ("sent",), ("refunded",), False)],
        ),
        (
            {"orders": {"A-17": {"status": "refunded", "price": 40}}, "notes": ["a", "b"]},
            {"state": BEFORE, "expect": [None, [{"state": {"orders.A-17": {"status": "refunded", "price": 40}}}]]},
            [("orders.A-17.status", ("sent",), ("refunded",), ("refunded",), True)],
        ),
        ({"a": 1, "b": 2}, {"expect": {"final_state": {"a": 1}}}, [("b", None, (2,), None, False)]),
        ({"a": 1}, {"expect": {"not": {"state": {"a": 2}}}}, []),
        ({"a": True}, {"state": {"a": 1}}, [("a", (1,), (True,), None, None)]),
    ],
)
def test_what_changed_and_what_did_not_come_true_is_told_by_path(
    after: Any, row: dict[str, Any], expected: list[Any]
) -> None:
    lines = [
        (state_change.path, state_change.before, state_change.after, state_change.expected, state_change.holds)
        for state_change in state_changes(build_attempt(after, **row))
    ]
    assert lines == expected
