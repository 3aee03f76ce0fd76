from __future__ import annotations

import os
from pathlib import Path

import pytest

from vivavoce.cli.options import load_env_file, read_env_file
from vivavoce.errors import UsageError

FILE = """\
# how the bot is reached
export BOT_URL=http://localhost:8000/#top # not the real one
EMPTY=
SPACED = two words
SINGLE='as it is: \\n ${X} #'
DOUBLE="a\\nb \\"c\\" #" # said
"""


def test_a_line_is_a_variable(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(FILE)
    assert read_env_file(tmp_path / ".env") == {
        "BOT_URL": "http://localhost:8000/#top",
        "EMPTY": "",
        "SPACED": "two words",
        "SINGLE": "as it is: \\n ${X} #",
        "DOUBLE": 'a\nb "c" #',
    }


@pytest.mark.parametrize("line", ["just words", "1A=2", 'KEY="secret', "KEY='a' b", "A-B=c"])
def test_any_other_line_is_an_error_that_shows_no_value(tmp_path: Path, line: str) -> None:
    (tmp_path / ".env").write_text(f"A=1\n\n{line}\n")
    with pytest.raises(UsageError, match=r"\.env:3 is not NAME=value") as raised:
        read_env_file(tmp_path / ".env")
    assert "secret" not in str(raised.value)


def test_what_is_set_already_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("SET_BEFORE=file\nSET_BY_FILE=file\n")
    monkeypatch.setenv("SET_BEFORE", "shell")
    monkeypatch.setenv("SET_BY_FILE", "")
    monkeypatch.delenv("SET_BY_FILE")
    load_env_file(tmp_path / ".env")
    assert (os.environ["SET_BEFORE"], os.environ["SET_BY_FILE"]) == ("shell", "file")
    monkeypatch.delenv("SET_BY_FILE")
