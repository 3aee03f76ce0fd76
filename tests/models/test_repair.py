from __future__ import annotations

from vivavoce.models.modes import asked_again


def test_the_model_sees_its_answer_and_what_is_wrong_with_it() -> None:
    said, asked = asked_again("{}", "$.score: Field required {{ problem }}")
    assert (said.role, said.text, asked.role) == ("assistant", "{}", "user")
    assert "$.score: Field required {{ problem }}" in asked.text


def test_a_schema_that_stands_in_no_message_stands_in_the_repair() -> None:
    _, asked = asked_again("{}", "no score", {"required": ["score"], "title": "größe"})
    first, *_, schema = asked.text.splitlines()
    assert first.endswith("no score")
    assert schema == '{"required": ["score"], "title": "größe"}'
