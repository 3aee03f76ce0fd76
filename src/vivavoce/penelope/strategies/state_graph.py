"""`StateGraph`: a small script of what the user says, with branches on what the target answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from vivavoce.comparing.text import contains
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.messages import describe
from vivavoce.penelope.context import TestState
from vivavoce.penelope.strategies.history import is_refusal, turns_kept
from vivavoce.penelope.strategies.strategy import Move
from vivavoce.penelope.turn import Turn
from vivavoce.safe_regex import expression

SEARCHED = 20_000
"""Characters of a reply that conditions search."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Condition(_Part):
    """What must hold of the target's reply; several conditions must all hold.

    `contains` is a text in any case and encoding, `matches` a regular expression found anywhere, both looked for in the
    first 20,000 characters; `refused` says whether the reply has to refuse or must not.
    """

    contains: str | None = None
    matches: str | None = None
    refused: bool | None = None

    @field_validator("matches")
    @classmethod
    def _check_expression(cls, pattern: str | None) -> str | None:
        try:
            expression(pattern or "")
        except UsageError as error:
            raise ValueError(str(error)) from error
        return pattern

    @model_validator(mode="after")
    def _check_any(self) -> Self:
        if self.contains is None and self.matches is None and self.refused is None:
            raise ValueError("a condition needs contains, matches or refused")
        return self

    def holds(self, turn: Turn) -> bool:
        """Say whether it holds of the reply of this turn."""
        reply = turn.reply[:SEARCHED]
        return (
            (self.contains is None or contains(reply, self.contains))
            and (self.matches is None or expression(self.matches).found_in(reply))
            and (self.refused is None or self.refused is is_refusal(turn))
        )


class Edge(_Part):
    """An edge to another node; one without `when` is taken if no earlier one is."""

    to: str
    when: Condition | None = None


class Node(_Part):
    """A place in the script: `say` is sent as it is, `improvise` is guidance for the tester.

    It lasts `turns` turns; then the first edge whose condition holds of the last reply is taken. Nodes that were
    entered `max_visits` times are skipped. Without an edge to follow, the script ends.
    """

    say: str | None = Field(default=None, min_length=1)
    improvise: str | None = None
    turns: int = Field(default=1, ge=1)
    next: str | list[Edge] | None = None
    max_visits: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _check_one_way_to_speak(self) -> Self:
        if (self.say is None) is (self.improvise is None):
            raise ValueError("a node either says a text or improvises, with say or improvise")
        if self.say is not None and self.turns > 1:
            raise ValueError("a node with 'say' lasts one turn; to repeat the text, add another node")
        return self

    @property
    def edges(self) -> Sequence[Edge]:
        """The edges, in the order in which they are tried."""
        return [Edge(to=self.next)] if isinstance(self.next, str) else self.next or ()


class StateGraph(_Part):
    """A script with branches, walked from `start`; when it is over the tester improvises.

    The current node is found before each turn by walking the turns after the openings of the test.
    """

    nodes: dict[str, Node] = Field(min_length=1)
    start: str
    name: str = "state_graph"
    adversarial: bool = False

    @model_validator(mode="after")
    def _check_ways(self) -> Self:
        for place, to in self._ways():
            if to not in self.nodes:
                raise ValueError(f"{place}: no node '{to}'{did_you_mean(to, self.nodes)}")
        lost = [name for name in self.nodes if name not in self._reachable()]
        if lost:
            raise ValueError(f"unreachable from '{self.start}': {', '.join(map(repr, lost))}")
        return self

    @property
    def heeds_refusals(self) -> bool:
        """Whether an edge depends on a refusal."""
        edges = (edge for node in self.nodes.values() for edge in node.edges)
        return any(edge.when is not None and edge.when.refused is not None for edge in edges)

    def move(self, state: TestState) -> Move:
        """Return the move of the current node."""
        name = self._place(turns_kept(state)[len(state.context.openings) :])
        if name is None:
            return Move()
        node = self.nodes[name]
        return Move(say=node.say, guidance=node.improvise or "")

    def _place(self, turns: Sequence[Turn]) -> str | None:
        name, turns_done, visits = self.start, 0, Counter([self.start])
        while (turns_done := turns_done + self.nodes[name].turns) <= len(turns):
            following = self._following(self.nodes[name], turns[turns_done - 1], visits)
            if following is None:
                return None
            name = following
            visits[name] += 1
        return name

    def _following(self, node: Node, last: Turn, visits: Mapping[str, int]) -> str | None:
        for edge in node.edges:
            limit = self.nodes[edge.to].max_visits
            if (limit is None or visits[edge.to] < limit) and (edge.when is None or edge.when.holds(last)):
                return edge.to
        return None

    def _ways(self) -> Iterable[tuple[str, str]]:
        yield "start", self.start
        for name, node in self.nodes.items():
            yield from ((f"nodes.{name}", edge.to) for edge in node.edges)

    def _reachable(self) -> set[str]:
        reached: set[str] = set()
        ahead = [self.start]
        while ahead:
            name = ahead.pop()
            if name not in reached:
                reached.add(name)
                ahead += [edge.to for edge in self.nodes[name].edges]
        return reached


def read_graph(fields: Mapping[str, Any]) -> StateGraph:
    """Read a script from a mapping with `start` and `nodes`, as a suite has it.

    Raises:
        UsageError: it is not a script: a node that does not exist or cannot be reached, a wrong expression, a node that
            says and improvises, or an unknown key.
    """
    try:
        return StateGraph.model_validate(dict(fields))
    except ValidationError as error:
        raise UsageError(_complaint(error)) from error


def _complaint(error: ValidationError) -> str:
    for detail in error.errors(include_url=False):
        if detail["type"] == "extra_forbidden":
            *place, key = map(str, detail["loc"])
            return f"{'.'.join(['state graph', *place])}: no key '{key}'{did_you_mean(key, _keys_at(place))}"
    return f"state graph: {describe(error)}"


def _keys_at(place: Sequence[str]) -> Iterable[str]:
    """Return the keys that are valid at a place."""
    if place[-1:] == ["when"]:
        return Condition.model_fields
    if "next" in place:
        return Edge.model_fields
    return Node.model_fields if place[:1] == ["nodes"] else StateGraph.model_fields
