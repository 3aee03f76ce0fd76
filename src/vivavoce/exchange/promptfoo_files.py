"""What a configuration of promptfoo names by `file://`: prompts, and tests in YAML, JSON, JSONL and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import Problem, UsageError
from vivavoce.exchange.loss import Loss
from vivavoce.exchange.suites import read_yaml
from vivavoce.files.rows import read_rows

_FILE = "file://"
_CODE = (".py", ".js", ".ts", ".mjs", ".cjs", ".sh", ".rb")


def mapping_of(value: Any) -> dict[str, Any]:
    """Return a value if it is a mapping, else an empty one."""
    return (
        {str(key): one for key, one in cast("Mapping[Any, Any]", value).items()} if isinstance(value, Mapping) else {}
    )


def list_of(value: Any) -> list[Any]:
    """Return a value as a list; nothing is an empty one."""
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def text_of_file(value: str, base: Path, loss: Loss) -> str | None:
    """Return a text, or that of the file that it names; None for code, which is not run."""
    name = value.removeprefix(_FILE)
    named = value.startswith(_FILE) or (
        "\n" not in value and "{{" not in value and value.endswith((".txt", ".json", ".yaml", ".yml", ".md", *_CODE))
    )
    if not named:
        return value
    if name.rpartition(":")[0].endswith(_CODE) or name.endswith(_CODE):
        loss.dropped(f"code in {name}")
        return None
    return _text(base / name)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise UsageError(Problem(f"is named by the configuration and cannot be read: {why}", path)) from error


def read_tests(value: Any, base: Path, loss: Loss) -> Iterator[dict[str, Any]]:
    """Yield the tests of a configuration and of the files that it names."""
    for item in list_of(value):
        if not isinstance(item, str):
            yield mapping_of(item)
            continue
        path = base / item.removeprefix(_FILE)
        match path.suffix.lower():
            case ".yaml" | ".yml" | ".json":
                yield from map(mapping_of, list_of(read_yaml(path, _text(path))))
            case ".jsonl":
                yield from (row for _, row in read_rows(path))
            case ".csv":
                yield from _table(path, loss)
            case _:
                loss.dropped(f"tests in {item}")


def _table(path: Path, loss: Loss) -> Iterator[dict[str, Any]]:
    """Yield a test for each row; `__expected…` columns are assertions in promptfoo's short form, `type: value`."""
    for row in csv.DictReader(_text(path).splitlines()):
        given = {str(key): value for key, value in cast("dict[Any, Any]", row).items() if value}
        asserts: list[dict[str, Any]] = []
        for key in [key for key in given if key.startswith("__expected")]:
            kind, colon, value = str(given.pop(key)).partition(":")
            short = (
                {"type": kind.strip(), "value": value.strip()} if colon else {"type": "equals", "value": kind.strip()}
            )
            asserts.append(short)
        test: dict[str, Any] = {"assert": asserts}
        for key in [key for key in given if key.startswith("__")]:
            value = given.pop(key)
            if key == "__description":
                test["description"] = value
            elif key.startswith("__metadata:"):
                test.setdefault("metadata", {})[key.removeprefix("__metadata:")] = value
            else:
                loss.dropped(f"column '{key}'")
        yield {**test, "vars": given}
