from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.metrics.exact.speakers import chosen


def test_a_word_that_is_not_known_is_refused_with_the_closest_one() -> None:
    assert chosen("m", "speaker", "user", ("assistant", "user")) == "user"
    with pytest.raises(UsageError, match="m: no speaker 'asistant'; did you mean 'assistant'"):
        chosen("m", "speaker", "asistant", ("assistant", "user"))
