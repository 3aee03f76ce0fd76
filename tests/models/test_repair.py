from __future__ import annotations

from vivavoce.models.repair import asked_again, used_together
from vivavoce.records.usage import Usage


def test_the_model_sees_its_answer_and_what_is_wrong_with_it() -> None:
    said, asked = asked_again("{}", "$.score: Field required {{ problem }}")
    assert (said.role, said.text, asked.role) == ("assistant", "{}", "user")
    assert "$.score: Field required {{ problem }}" in asked.text


def test_what_two_answers_cost_is_known_only_where_both_said_what_they_used() -> None:
    one = Usage(input_tokens=3, calls=1, cost=0.5)
    assert used_together(one, one) == Usage(input_tokens=6, calls=2, cost=1.0)
    assert used_together(one, None) == used_together(None, one) == Usage(input_tokens=3, calls=1, cost=None)
    assert used_together(None, None) is None
