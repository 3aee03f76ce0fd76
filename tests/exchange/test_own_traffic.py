"""Requests of a run are marked, and spans that come of them are recognised; nobody else's are."""

from __future__ import annotations

import re

from vivavoce.exchange.own_traffic import PREFIX, is_own, marked, of_run


def test_requests_are_marked_in_a_run_only_and_headers_of_the_user_stay() -> None:
    assert marked({"a": "b"}) == {"a": "b"}
    with of_run("nightly-1"):
        first, second = marked({"a": "b"}), marked()
        own = marked({"Traceparent": "mine", "Baggage": "user=1"})
    assert own == {"Traceparent": "mine", "Baggage": "user=1"}
    assert first["a"] == "b"
    assert first["baggage"] == "vivavoce.run=nightly-1"
    assert re.fullmatch(r"00-76697661[0-9a-f]{24}-[0-9a-f]{16}-01", first["traceparent"])
    assert first["traceparent"] != second["traceparent"]
    assert marked() == {}


def test_spans_of_a_run_are_told_by_their_trace_their_attributes_or_their_resource() -> None:
    assert is_own(PREFIX + "0" * 24)
    assert is_own("0" * 32, {"vivavoce.run": "r"})
    assert is_own("0" * 32, {}, {"vivavoce.run": "r"})
    assert is_own("0" * 32, {"baggage.vivavoce.run": "r"})
    assert not is_own("0" * 24 + PREFIX, {"run": "r", "vivavoce.run": ""}, {})
