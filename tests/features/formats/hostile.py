"""Records as nobody should write them: an example in which any value is another one, or gone."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, cast

from hypothesis import strategies as st

Path = tuple[str | int, ...]

_VALUES: list[Any] = [
    *(
        None,
        True,
        0,
        -1,
        1e300,
        10**30,
        "",
        "x",
        "\ud800",
        "NaN",
        "1970-01-01T00:00:00Z",
        [],
        {},
        [None],
        [[]],
        [1, "x"],
    ),
    *({"": None}, {"role": "user"}, [{}], [{"type": 1}], {"type": "text"}, {"id": {}}),
]


@st.composite
def damage(draw: st.DrawFn, example: Any) -> Any:
    """Return an example with one to three values replaced, removed or repeated."""
    value = deepcopy(example)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(value))
        if not places:
            break
        *above, last = draw(st.sampled_from(places))
        holder = value
        for step in above:
            holder = holder[step]
        match draw(st.sampled_from(("replace", "remove", "repeat"))):
            case "remove":
                del holder[last]
            case "repeat" if isinstance(holder, list):
                items = cast("list[Any]", holder)
                items.append(deepcopy(items[cast("int", last)]))
            case _:
                holder[last] = deepcopy(draw(st.sampled_from(_VALUES)))
    return value


def _places(value: Any, above: Path = ()) -> Iterator[Path]:
    members: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        members = list(cast("dict[str | int, Any]", value).items())
    elif isinstance(value, list):
        members = list(enumerate(cast("list[Any]", value)))
    for key, inner in members:
        yield (*above, key)
        yield from _places(inner, (*above, key))
