"""Every route of the API as `/openapi.json` describes it, asked what it may be asked and what it may not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from requests import Session
from schemathesis import GenerationMode, openapi
from schemathesis import checks as registry
from schemathesis.core.failures import FailureGroup

from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store

from .api.test_jobs import MANY, ended, submit
from .live import serving
from .pages.cases import keep, outcome, per_turn, turn

EXAMPLES = 6
"""Requests of each kind to each route."""

STREAMS = frozenset(("/api/v1/jobs/{job}/events",))
"""What goes on until something ends; tests of its own read it."""

METRICS = ["turn_count", "repetition", "refusal"]
"""What measures the conversations that are made up: names that are made up measure nothing."""

CHECKED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
registry.load_all_checks()

ANY_TEXT = {"type": "string", "title": "", "description": ""}
"""The schema of a parameter without a rule, its title and description aside."""

OFTEN = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate,),  # a failure is told as it is: making it smaller asks the server a thousand times more
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
)


class Api(NamedTuple):
    """A served API, and names of what is there."""

    schema: Any
    names: dict[str, Any]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A server with a run and a job; there is no suite below its folder, so that no request runs a model."""
    folder: Path = tmp_path_factory.mktemp("api")
    with Store.open(str(folder / "kept.db")) as store:
        talk = [turn(0, "Hello?", "Hello!"), turn(1, "Bye", "Bye!")]
        keep(store, [outcome("one", talk, {"goal": per_turn(0.5, 1.0)}), outcome("two", position=1)])
        with serving(store, ServerPolicy(folder)) as url:
            job = ended(url, submit(url, MANY).id)
            names = {"run": "run-1", "sample": "one", "trial": 0, "job": job.id}
            yield Api(openapi.from_url(f"{url}/openapi.json"), names)


def broken(api: Api, mode: GenerationMode, *, there: bool) -> list[str]:
    """Ask every route, and return what was wrong with what they answered; `there` asks for what is there."""
    session = Session()
    session.trust_env = False
    found: list[str] = []
    for result in api.schema.get_all_operations():
        operation = result.ok()
        if operation.path in STREAMS or (there and operation.method == "delete"):
            continue
        named = {key: value for key, value in api.names.items() if f"{{{key}}}" in operation.path}
        if (there and not named) or (mode is GenerationMode.NEGATIVE and takes_any_text(operation)):
            continue
        try:
            ask(operation, mode, named if there else None, session)
        except Unsatisfiable:  # it takes nothing that could be wrong
            continue
        except FailureGroup as error:
            found += [f"{operation.label}: {exception}" for exception in error.exceptions]
    session.close()
    return found


def takes_any_text(operation: Any) -> bool:
    """Say whether no request can be wrong: there is no body, and nothing but a name in the path, which any text is."""
    described = operation.definition.raw
    return "requestBody" not in described and all(
        one["in"] == "path" and {**one["schema"], "title": "", "description": ""} == ANY_TEXT
        for one in described.get("parameters", ())
    )


def ask(operation: Any, mode: GenerationMode, named: dict[str, Any] | None, session: Session) -> None:
    """Ask one route.

    Raises:
        FailureGroup: an answer was not as it is described.
    """

    checks: list[Any] = [cast("Any", registry).CHECKS.get_one(name) for name in CHECKED]

    @OFTEN
    @given(operation.as_strategy(generation_mode=mode, path_parameters=named))
    def asked(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and "metrics" in (body := _fields(case.body)):
            body["metrics"] = METRICS
        case.call_and_validate(checks=checks, session=session, timeout=30)

    asked()


def _fields(body: object) -> dict[str, Any]:
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("there", [True, False], ids=["what is there", "any name"])
def test_every_route_answers_as_it_is_described(api: Api, mode: GenerationMode, there: bool) -> None:
    assert broken(api, mode, there=there) == []
