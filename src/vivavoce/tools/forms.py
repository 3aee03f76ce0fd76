"""How people write who answers the calls of a tool, in a suite and in a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, TypeAdapter
from pydantic import ValidationError as _ValidationError

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.tools.canned import Case, check_cases
from vivavoce.written import Written


class FunctionForm(Written):
    """A Python function, `file.py:name`, which may take `timeout` seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    function: str
    timeout: float | None = Field(default=None, gt=0)


class RecordingForm(BaseModel):
    """A file of recordings, from which the results of calls with the same arguments are taken."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recordings: str


def _reachable(cases: list[Case]) -> list[Case]:
    check_cases(cases)
    return cases


def _as_cases(value: Any) -> Any:
    return [value] if isinstance(value, Mapping) else value


def _kind_of(value: object) -> str:
    if isinstance(value, FunctionForm | RecordingForm):
        return "function" if isinstance(value, FunctionForm) else "recordings"
    written = cast("Mapping[str, object]", value if isinstance(value, Mapping) else {})
    return next((kind for kind in ("function", "recordings") if kind in written), "cases")


def _known(value: Any) -> Any:
    if isinstance(value, str):
        return {"function": value}
    if not isinstance(value, list | Mapping | BaseModel):
        raise ValueError(f"is none of {', '.join(_KINDS)}, nor a list of cases; got {value!r:.60}")
    keys = [str(key) for key in cast("Mapping[object, object]", value)] if isinstance(value, Mapping) else []
    if keys and not {*_KINDS, "when"} & {*keys}:
        raise ValueError(f"no handler '{keys[0]}'{did_you_mean(keys[0], _KINDS)}")
    return cast("Any", value)


_KINDS = ("result", "error", "function", "recordings")

Cases = Annotated[
    list[Case],
    AfterValidator(_reachable),
    BeforeValidator(_as_cases, json_schema_input_type=Case | list[Case]),
]
"""One result or error, or several for different calls."""

HandlerForm = Annotated[
    Annotated[FunctionForm, Tag("function")]
    | Annotated[RecordingForm, Tag("recordings")]
    | Annotated[Cases, Tag("cases")],
    Discriminator(_kind_of),
    BeforeValidator(_known, json_schema_input_type=str | FunctionForm | RecordingForm | Case | list[Case]),
]
"""Who answers the calls of a tool: a function (also its name alone), recordings, or what is written down."""

_CASES: TypeAdapter[list[Case]] = TypeAdapter(Cases)


def read_cases(form: object, where: str) -> list[Case]:
    """Read the answers of a tool that are written down.

    Raises:
        UsageError: with each mistake; the text begins with `where` and the path below it.
    """
    if isinstance(form, Mapping) and (named := {"function", "recordings"} & cast("Mapping[str, Any]", form).keys()):
        raise UsageError(f"{where}: {min(named)} belongs to the handlers of the target; a row gives result or error")
    try:
        return _CASES.validate_python(form)
    except _ValidationError as error:
        single = isinstance(form, Mapping)
        raise UsageError(*_mistakes(error, where, single=single)) from error


def _mistakes(error: _ValidationError, where: str, *, single: bool) -> list[str]:
    found: dict[str, str] = {}
    for one in error.errors(include_url=False):
        steps = one["loc"][1:] if single else one["loc"]
        rule = "unknown key" if one["type"] == "extra_forbidden" else one["msg"].removeprefix("Value error, ")
        found.setdefault(".".join([where, *map(str, steps)]), rule)
    return [f"{path}: {rule}" for path, rule in found.items()]
