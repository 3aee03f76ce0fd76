from __future__ import annotations

import json

import pytest

from vivavoce.report.text import inert, printable, printable_json


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::error title=x::y", ": :error title=x::y"),
        ("  \t\u00a0\u3000::add-mask::x", "  \t\u00a0\u3000: :add-mask::x"),
        ("a\n::stop-commands::x\n\n ::group::y", "a\n: :stop-commands::x\n\n : :group::y"),
        ("a\r::error::x", "a\r: :error::x"),
        ("\x1b[2m   \x1b[0m::error::x", "\x1b[2m   \x1b[0m: :error::x"),
        ("HTTP/1.1 500 ##[error]x", "HTTP/1.1 500 # #[error]x"),
        ("###[error]x", "## #[error]x"),
        ("a ##vso[task.setvariable variable=x]y", "a # #vso[task.setvariable variable=x]y"),
    ],
)
def test_a_log_finds_no_command(line: str, shown: str) -> None:
    assert inert(line) == shown
    assert inert(shown) == shown


@pytest.mark.parametrize("line", ["std::move(x)", "a ::error::x", ":: x", "## Heading", "#[error]", "a:: b", ""])
def test_what_is_no_command_stays(line: str) -> None:
    assert inert(line) == line


def test_a_command_that_control_characters_hide_is_found() -> None:
    assert printable("\x1b]0;t\x07\n\u202e::er\x00ror::x #\x9f#[error]") == "0;t\n: :error::x # #[error]"


@pytest.mark.parametrize("value", [["a ##[error]x ###[b] ##vso[c]"], {"::error::": "\x1b[1m \x07 \x9b \u202e \\##["}])
def test_json_is_obeyed_by_nobody_and_keeps_its_value(value: object) -> None:
    text = printable_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert printable(text) == text
