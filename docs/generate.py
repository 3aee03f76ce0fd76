"""Write the generated pages of the reference: the command line, metrics, public names, the schema of a suite, limits.

`python docs/generate.py` writes them; with `--check` it exits with 1 when one of them is not up to date.
"""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

from limits_page import limits_page
from metric_cards import metric_cards
from python_pages import python_pages

from vivavoce.cli.main import commands, full_name, load_command, panels, parts_of
from vivavoce.cli.schema import schema_text

REFERENCE = Path(__file__).parent / "reference"
ARCHITECTURE = REFERENCE.parent / "architecture.md"
LAYERS = re.compile(r"(<!-- layers: .*? -->\n).*?(<!-- end of layers -->)", re.DOTALL)
"""The part of that page which is generated, from the highest layer to the lowest."""
COMMENT = re.compile(r"^#.*", re.MULTILINE)
"""A line that Markdown would take for a heading."""
HEAD = """# The command line

<!-- Written by docs/generate.py from the help of each command. Change the help, then run: make docs -->

The help of every command, as `viva COMMAND --help` prints it. Wrong usage or configuration exits with 2 and one line
for each mistake.
"""


def main(check: bool) -> int:
    """Write the pages, or say which of them are old; return the exit code."""
    new = pages()
    old = [path for path, text in new.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if check:
        for path in old:
            print(f"{path} is not up to date; run: make docs", file=sys.stderr)
        return 1 if old else 0
    for path in old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(new[path], encoding="utf-8")
        print(f"wrote {path}")
    return 0


def pages() -> dict[Path, str]:
    """Return the text of each generated page."""
    return {
        REFERENCE / "cli.md": command_line(),
        REFERENCE / "limits.md": limits_page(),
        REFERENCE / "metrics.md": metric_cards(),
        REFERENCE / "suite.schema.json": schema_text() + "\n",
        **python_pages(REFERENCE),
        ARCHITECTURE: architecture(),
    }


def architecture() -> str:
    """Return the page about the architecture, with the layers that import-linter checks."""
    contracts = tomllib.loads((REFERENCE.parents[1] / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (layers,) = (one["layers"] for one in contracts["contracts"] if one["type"] == "layers")
    names = [" ".join(f"`{name.removeprefix('vivavoce.')}`" for name in layer.split(" | ")) for layer in layers]
    listed = "\n".join(f"{place}. {name}" for place, name in enumerate(names, 1))
    return LAYERS.sub(lambda found: f"{found[1]}\n{listed}\n{found[2]}", ARCHITECTURE.read_text("utf-8"))


def command_line() -> str:
    """Return the page about the commands."""
    names = [each for listed in panels().values() for name in listed for each in (name, *parts_of(name))]
    listed = "\n".join(
        f"- [`viva {full_name(name)}`](#viva-{full_name(name).replace(' ', '-')}): {commands()[name].help}"
        for name in names
    )
    return "\n".join([HEAD, listed, "", *(line for name in names for line in command(name))])


def command(name: str) -> Iterator[str]:
    """Yield the lines about one command."""
    found = load_command(name)
    function = inspect.unwrap(found.callback)
    arguments = [parameter for parameter in found.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in found.params if parameter.param_type_name == "option"]
    said = [spelled(argument) for argument in arguments]
    full = full_name(name)
    yield from (f"## viva {full}", "", "```bash", " ".join(["viva", full, *said, "[OPTIONS]"]), "```", "")
    yield from (COMMENT.sub(r"`\g<0>`", inspect.cleandoc(function.__doc__ or "")), "")
    kinds = get_type_hints(function)
    yield from table("argument", [(f"`{a.name.upper()}`", meaning(a, kinds)) for a in arguments])
    yield from table("option", [(flags(o, kinds), meaning(o, kinds)) for o in options])


def spelled(argument: Any) -> str:
    """Return an argument as the first line of the help spells it."""
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def flags(option: Any, kinds: dict[str, Any]) -> str:
    """Return the names of an option, with a word for its value where it takes one."""
    names = sorted(option.opts, key=len, reverse=True)
    word = "" if option.is_flag else " N" if int in parts(kinds[option.name]) else " " + names[0].strip("-").upper()
    return ", ".join(f"`{name}{word}`" for name in names)


def meaning(parameter: Any, kinds: dict[str, Any]) -> str:
    """Return what a parameter means, with its choices and its default."""
    choices = [part for part in parts(kinds[parameter.name]) if isinstance(part, str)]
    said = [(parameter.help or "").strip()]
    if choices:
        said.append(f"One of {', '.join(f'`{choice}`' for choice in choices)}.")
    if parameter.default not in (None, False) and not parameter.required:
        said.append(f"Default: `{parameter.default}`.")
    return " ".join(said).replace("|", "\\|")


def parts(kind: Any) -> list[Any]:
    """Return the types and the literal values that a type is made of."""
    return [part for one in get_args(kind) for part in parts(one)] or [kind]


def table(head: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of a table, none where it has no rows."""
    if rows:
        yield from (f"| {head} | meaning |", "|---|---|", *(f"| {name} | {line} |" for name, line in rows), "")


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
