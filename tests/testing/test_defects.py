"""The registry of defects: every name, and which metric is there to see it."""

from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import read_messages
from vivavoce.metrics.factory import metrics
from vivavoce.testing.defects import DEFECTS, SEEN_BY, plant

MESSAGES = read_messages([{"role": "user", "content": "Hi!"}, {"role": "assistant", "content": "Hello!"}])


def test_an_unknown_operator_is_an_error() -> None:
    with pytest.raises(UsageError, match="no operator 'wrong_arguments'; did you mean 'wrong_argument'"):
        plant("wrong_arguments", MESSAGES)


def test_every_metric_with_defects_of_its_own_exists_and_its_defects_do() -> None:
    assert set(SEEN_BY) <= set(metrics.names())
    assert {name for names in SEEN_BY.values() for name in names} == set(DEFECTS)


@pytest.mark.parametrize("name", DEFECTS)
def test_every_defect_says_in_a_sentence_what_it_does(name: str) -> None:
    assert (DEFECTS[name].__doc__ or "").strip().partition("\n")[0].endswith(".")
