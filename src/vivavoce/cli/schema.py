"""`viva schema`: print the JSON Schema of a suite."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from vivavoce.grading.expected import ExpectField
from vivavoce.suites.spec import SuiteSpec


def command() -> None:
    """Print the JSON Schema of a suite.

    Save it beside your suites and name it in the first line of each suite:
    # yaml-language-server: $schema=suite.schema.json
    """
    print(schema_text())


def schema_text() -> str:
    """Return the JSON Schema of a suite as text."""
    schema = SuiteSpec.model_json_schema()
    dataset = schema["properties"]["dataset"]
    schema["properties"]["dataset"] = {"anyOf": [{"type": "string"}, dataset]}
    expect = TypeAdapter[Any](ExpectField).json_schema()
    schema["$defs"] |= expect.pop("$defs")
    rows = schema["$defs"]["DatasetSpec"]["properties"]["rows"]["anyOf"][0]["items"]
    rows["properties"] = {"expect": expect}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=2)
