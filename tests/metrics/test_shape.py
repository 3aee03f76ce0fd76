from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from vivavoce.metrics.checklist import checklist_reply
from vivavoce.metrics.judged.faithfulness import faithfulness_reply
from vivavoce.metrics.judged.tool_use import tool_use_reply
from vivavoce.metrics.judged.topic_adherence import topic_reply
from vivavoce.metrics.question import Shape, limited
from vivavoce.models.structured import allows_strict, class_schema


class Fruit(Shape):
    """A fruit, as we call it."""

    kind: str
    ripe: bool


class Basket(Shape):
    """What nobody need know."""

    fruits: list[Fruit]
    reasoning: str


LIMITED = limited(Basket, "fruits", Fruit, "kind", ("apple", "pear"))


def basket(kind: str) -> dict[str, Any]:
    return {"fruits": [{"kind": kind, "ripe": True}], "reasoning": "Seen."}


def test_a_field_of_each_part_is_one_of_the_values() -> None:
    read = LIMITED.model_validate(basket("pear"))
    assert isinstance(read, Basket)
    assert isinstance(read.fruits[0], Fruit)
    with pytest.raises(ValidationError, match=r"fruits\.0\.kind\n  Input should be 'apple' or 'pear'"):
        LIMITED.model_validate(basket("plum"))
    assert Basket.model_validate(basket("plum")).fruits[0].kind == "plum"


def test_the_schema_keeps_the_order_of_the_fields_and_leaves_our_docstrings_out() -> None:
    schema = class_schema(LIMITED)
    assert list(schema["properties"]) == ["fruits", "reasoning"]
    assert list(schema["$defs"]["Fruit"]["properties"]) == ["kind", "ripe"]
    assert "description" not in str(schema) + str(class_schema(Basket))


@pytest.mark.parametrize(
    ("shape", "part", "field", "values"),
    [
        (checklist_reply(("memory", "clarity")), "Check", "item", ["memory", "clarity"]),
        (tool_use_reply(("c0", "c1")), "Call", "call", ["c0", "c1"]),
        (topic_reply(range(1, 3)), "UserRequest", "turn", [1, 2]),
        (faithfulness_reply((1, 3)), "Claim", "turn", [1, 3]),
    ],
)
def test_a_judge_reads_in_the_schema_what_it_may_name(
    shape: type[BaseModel], part: str, field: str, values: list[object]
) -> None:
    schema = class_schema(shape)
    assert allows_strict(schema)
    assert schema["$defs"][part]["properties"][field]["enum"] == values


@pytest.mark.parametrize(
    ("shape", "part", "field"), [(checklist_reply(()), "Check", "item"), (tool_use_reply(()), "Call", "call")]
)
def test_where_nothing_is_known_before_the_answer_any_name_is_taken(
    shape: type[BaseModel], part: str, field: str
) -> None:
    assert class_schema(shape)["$defs"][part]["properties"][field] == {"type": "string"}
