"""`viva validate schema`: print the JSON Schema of a suite, or of the rows of a dataset."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from vivavoce.grading.expected import ExpectField
from vivavoce.samples.row import PATHS
from vivavoce.samples.sample import Sample
from vivavoce.suites.spec import SuiteSpec
from vivavoce.tools.answer import Approvals, Cases

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def command(
    *, rows: Annotated[bool, typer.Option("--rows", help="Print the schema of dataset rows instead.")] = False
) -> None:
    """Print the JSON Schema of a suite, or with --rows the schema of dataset rows.

    Save it next to your suites and name it in the first line of each suite: # yaml-language-server:
    $schema=suite.schema.json
    """
    print(rows_text() if rows else schema_text())


def schema_text() -> str:
    """Return the JSON Schema of a suite as text."""
    schema = SuiteSpec.model_json_schema()
    for name, definition in {"": schema, **schema["$defs"]}.items():
        if name not in _WITHOUT_VARIABLES and "properties" in definition:
            definition["properties"] = {key: _or_variable(one) for key, one in definition["properties"].items()}
    dataset = schema["properties"]["dataset"]
    schema["properties"]["dataset"] = {"anyOf": [{"type": "string"}, dataset]}
    schema["$defs"] |= _row_definitions()
    schema["$defs"]["DatasetSpec"]["properties"]["rows"]["anyOf"][0]["items"] = {"$ref": "#/$defs/Row"}
    schema["$schema"] = _DRAFT
    return json.dumps(schema, indent=2)


_VARIABLE = {"type": "string", "pattern": r"^\$\{\w+(:-[^{}]*)?\}$"}
"""A number, or true or false, that is read from the environment."""
_WITHOUT_VARIABLES = ("FunctionForm", "RecordingForm", "Case")
"""The parts of a suite in which no variables are read: the handlers of a target."""


def _or_variable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that may be a variable where it may be a number, or true or false."""
    choices: list[dict[str, Any]] = schema.get("anyOf") or schema.get("oneOf") or [schema]
    if not any(choice.get("type") in ("integer", "number", "boolean") for choice in choices):
        return schema
    about = {key: one for key, one in schema.items() if key in ("title", "default", "description")}
    kept = [{key: one for key, one in choice.items() if key not in about} for choice in choices]
    return {"anyOf": [*kept, _VARIABLE], **about}


def rows_text() -> str:
    """Return the JSON Schema of a dataset as text: of a row, as a line of JSONL holds it, or of a list of rows."""
    row = {"$ref": "#/$defs/Row"}
    schema = {"anyOf": [{"type": "array", "items": row}, row], "$defs": _row_definitions(), "$schema": _DRAFT}
    return json.dumps(schema, indent=2)


def _row_definitions() -> dict[str, Any]:
    """Return the definition of a row, with those that it refers to.

    It names what a row may hold. A reader takes more than one spelling of a message or a call, and keeps unknown keys,
    so these are not refused.
    """
    expect = TypeAdapter[Any](ExpectField).json_schema()
    definitions = expect.pop("$defs")
    properties: dict[str, Any] = dict(Sample.model_json_schema()["properties"])
    properties |= {
        "id": {"type": ["string", "number"]},
        "input": {"type": ["string", "object", "array"], "items": {"type": ["string", "object"]}},
        "history": {"type": "array", "items": _MESSAGE},
        "messages": {"type": "array", "items": _MESSAGE},
        "reference_tool_calls": {"type": "array", "items": {"type": ["object", "array", "null"]}},
        "rubric": {"type": ["string", "object"]},
        "expect": expect,
        **_about_tools(definitions),
        **{name: {"type": "string"} for name in PATHS},
    }
    nullable = {name: {"anyOf": [one, {"type": "null"}]} for name, one in properties.items()}
    description = "What to ask, or a recorded conversation, with what is known about the right answer."
    return {**definitions, "Row": {"type": "object", "description": description, "properties": nullable}}


_ROLES = ("system", "user", "assistant", "tool")
_MESSAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "role": {"anyOf": [{"enum": list(_ROLES)}, {"type": "string"}]},
        "content": {"type": ["string", "array", "null"]},
        "tool_calls": {"type": ["array", "null"]},
    },
}


def _about_tools(definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas of what a row says about tools; those that they refer to become definitions, too."""
    results, approvals = TypeAdapter[Any](dict[str, Cases]), TypeAdapter[Any](Approvals)
    template = "#/$defs/{model}"
    about = {"tool_results": results.json_schema(ref_template=template), "approvals": approvals.json_schema()}
    definitions |= about["tool_results"].pop("$defs")
    return {"state": {"type": "object"}, **about}
