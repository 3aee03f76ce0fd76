"""Text for a terminal and a log: lines without control sequences, and tables that stay readable in a narrow window."""

from __future__ import annotations

import io
import json
import math
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType
from rich.text import Text

from vivavoce.report.text import Column, FittingTable, Labelled, inert, printable, printable_json, strict_json
from vivavoce.safe_text import encodable


@pytest.mark.parametrize(
    ("line", "text"),
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
def test_a_log_finds_no_command(line: str, text: str) -> None:
    assert inert(line) == text
    assert inert(text) == text


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


COLUMNS = (Column("run"), Column("started", rank=2), Column("mean", "right", rank=1), Column("why", flows=True))
ROW = ("support-bot-1867a4", "2026-11-20 23:26", "0.500", "because of this and that")


def lines(part: RenderableType, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(part)
    return out.getvalue().splitlines()


def table(width: int, *rows: tuple[str, ...]) -> list[str]:
    return lines(FittingTable(COLUMNS, [[*map(Text, row)] for row in rows]), width)


def test_everything_is_shown_where_there_is_room() -> None:
    assert table(80, ROW) == [
        "run                 started            mean  why",
        "support-bot-1867a4  2026-11-20 23:26  0.500  because of this and that",
    ]


def test_in_a_narrow_window_the_least_important_columns_are_left_out_first() -> None:
    assert [line.split() for line in table(50, ROW)[:2]] == [
        ["run", "mean", "why"],
        ["support-bot-1867a4", "0.500", "because", "of", "this", "and"],
    ]
    assert table(41, ROW)[0].split() == ["run", "why"]


def test_what_is_left_out_is_named() -> None:
    assert table(50, ROW)[-1] == "not shown, the terminal is too narrow: started"
    assert " ".join(table(41, ROW)[-2:]).endswith("not shown, the terminal is too narrow: started, mean")
    assert "not shown" not in "".join(table(80, ROW))


def test_what_is_never_left_out_is_folded_and_not_cut() -> None:
    lines = table(20, ROW)
    assert "".join(line[:10].strip() for line in lines[1:]).startswith("support-bot-1867a4"[:10])
    assert sum(line.count("…") for line in lines) == 0
    assert all(len(line) <= 20 for line in lines)


def test_no_line_ends_with_blanks() -> None:
    rows = [ROW, ("a", "b", "c", "")]
    assert not [line for width in (20, 41, 80) for line in table(width, *rows) if line != line.rstrip()]


def test_colours_do_not_bring_the_blanks_back() -> None:
    out = io.StringIO()
    rows = [[Text("a", style="red"), Text("b")], [Text("longer", style="red"), Text("")]]
    Console(file=out, width=40, force_terminal=True).print(FittingTable((Column("one"), Column("two")), rows))
    assert not [line for line in out.getvalue().replace("\x1b[0m", "").splitlines() if line.endswith(" ")]


def test_lines_of_a_text_begin_where_its_first_one_does() -> None:
    assert lines(Labelled(Text("user  "), Text("one two three four five six\n\nseven")), 26) == [
        "user  one two three four",
        "      five six",
        "",
        "      seven",
    ]


def test_a_label_that_leaves_no_room_has_the_text_below_it() -> None:
    assert lines(Labelled(Text("a sample with a long name  "), Text("why it is so, in some words")), 30) == [
        "a sample with a long name",
        "    why it is so, in some",
        "    words",
    ]


def test_a_label_without_text_stands_alone() -> None:
    assert lines(Labelled(Text("user  "), Text("")), 30) == ["user"]


def test_the_style_of_a_label_ends_with_it() -> None:
    out = io.StringIO()
    Console(file=out, width=30, force_terminal=True).print(Labelled(Text("user  ", style="bold"), Text("hello")))
    assert out.getvalue() == "\x1b[1muser  \x1b[0mhello\n"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


@given(VALUES)
def test_every_value_comes_back_as_it_was_from_one_line_of_utf_8(value: object) -> None:
    text = strict_json(value)
    assert "\n" not in text
    assert json.loads(text.encode("utf-8"), parse_constant=refuse) == value


@pytest.mark.parametrize("beside", ["plain", "\ud800"])
@pytest.mark.parametrize(("number", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_a_number_that_json_does_not_know_is_written_as_text(number: float, text: str, beside: str) -> None:
    assert json.loads(strict_json({"n": [number], "t": beside}), parse_constant=refuse)["n"] == [text]


@given(VALUES, st.text(st.characters(categories=["Cs"]), min_size=1))
def test_half_a_character_is_written_as_its_escape_and_changes_nothing_else(value: object, half: str) -> None:
    read = json.loads(strict_json({half: [half], "beside": value}).encode(), parse_constant=refuse)
    assert read == {encodable(half): [encodable(half)], "beside": value}
    assert encodable(half).startswith("\\ud")


def test_an_object_that_json_does_not_know_is_written_as_its_text() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    assert strict_json({"a": Odd()}) == '{"a":"odd"}'
