"""Assertions about the state at the end: what the target's tools left of the `state` of a row."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping
from typing import Annotated, cast

from pydantic import Field, JsonValue

from vivavoce.comparing.json_values import same_json
from vivavoce.errors import GraderFault
from vivavoce.grading.assertions import Assertion
from vivavoce.grading.scene import Held, Scene, held_unless
from vivavoce.metrics.exact.arguments import show
from vivavoce.metrics.exact.paths import at_path

_SHOWN = 5
"""Differences that are named."""


class OfState(Assertion, ABC):
    """Fields of an assertion about the state at the end."""

    def idle(self, scene: Scene) -> str:
        """Return nothing: what was done before the turn counts, too."""
        return ""


class State(OfState):
    """At the end, the state has these values at these paths, such as `orders.A-17.status`; the rest is free."""

    state: Annotated[dict[str, JsonValue], Field(min_length=1)]

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"leaves the state with {show(self.state)}"

    def held(self, scene: Scene) -> Held:
        """Look at each path.

        Raises:
            GraderFault: nothing says what the state is.
        """
        state = _state_of(scene)
        found = [list(_at(state, path, wanted)) for path, wanted in self.state.items()]
        right = sum(not differences for differences in found)
        differences = [line for lines in found for line in lines]
        return Held(not differences, right / len(found), _listed(differences))


class FinalState(OfState):
    """At the end, the state is exactly this one."""

    final_state: dict[str, JsonValue]

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"leaves exactly the state {show(self.final_state)}"

    def held(self, scene: Scene) -> Held:
        """Compare the whole state.

        Raises:
            GraderFault: nothing says what the state is.
        """
        differences = list(differing(cast("JsonValue", dict(_state_of(scene))), self.final_state))
        return held_unless(_listed(differences))


def _state_of(scene: Scene) -> Mapping[str, JsonValue]:
    if scene.view.state is None:
        hint = (
            "give the row a state, which a target of kind openai or function changes; "
            "where a recording answers the tools, it is known after the recorded calls alone"
        )
        raise GraderFault(f"the state cannot be checked: nothing says what it is; {hint}", kind="missing")
    return scene.view.state


def _at(state: Mapping[str, JsonValue], path: str, wanted: JsonValue) -> Iterator[str]:
    """Yield how the value at a path differs."""
    found = at_path(dict(state), path)
    if found is None:
        yield f"{path}: wanted {show(wanted)}, is not there"
    else:
        yield from differing(found[0], wanted, path)


def differing(actual: JsonValue, wanted: JsonValue, path: str = "") -> Iterator[str]:
    """Yield a line for each place where two values differ: `orders.A-17.status: wanted "refunded", is "sent"`."""
    if same_json(actual, wanted):
        return
    if isinstance(actual, dict) and isinstance(wanted, dict):
        for key in {**wanted, **actual}:
            place = f"{path}.{key}" if path else key
            if key not in actual:
                yield f"{place}: wanted {show(wanted[key])}, is not there"
            elif key not in wanted:
                yield f"{place}: not wanted, is {show(actual[key])}"
            else:
                yield from differing(actual[key], wanted[key], place)
    elif isinstance(actual, list) and isinstance(wanted, list) and len(actual) == len(wanted):
        for number, (one, other) in enumerate(zip(actual, wanted, strict=True)):
            yield from differing(one, other, f"{path}.{number}" if path else str(number))
    else:
        yield f"{path or 'the state'}: wanted {show(wanted)}, is {show(actual)}"


def _listed(differences: list[str]) -> str:
    more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
    return "; ".join(differences[:_SHOWN]) + more
