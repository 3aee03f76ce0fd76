"""What the site adds to the Markdown of docs, which stays as GitHub shows it.

- The sidebar: the pages in the order in which the index names them, under its headings.
- A caption over each block that has a file name.
- All of a docstring in place of its first sentence.
- Pictures of the pages, where `make screenshots` has drawn them.
- A copy of each Markdown file outside docs that a page links to, as Sphinx has of other files.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import ModuleType

from pygments.lexers.data import JsonLexer
from pygments.lexers.shell import BashLexer
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

INDEX = "README"
DECISIONS = "decisions/README"
PYTHON = "reference/python/"
PICTURES = "pages"

FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
HEADING = re.compile(r"^#{2,3} +(.*)$")
PAGE = re.compile(r"\]\(([\w/-][\w/.-]*)\.md(?:#[\w-]*)?\)")
PACKAGE = re.compile(r"^# (\S+)$", re.MULTILINE)
ENTRY = re.compile(r"^## (\w+)\n\n.*\n", re.MULTILINE)
UPWARD = re.compile(r"\]\(((?:\.\./)+[^)#]+\.md)(#[^)]*)?\)")
PICTURE = re.compile(r"^<!-- picture (\S+): (.*) -->$", re.MULTILINE)

LEXERS = {"console": BashLexer, "csv": TextLexer, "jsonl": JsonLexer}
"""How languages are coloured that Pygments does not know, or knows with a prompt before each command."""
DOCSTRING = """## {name}

```{{eval-rst}}
.. auto{kind}:: {package}.{name}
{members}
```
"""
TOCTREE = """
```{{toctree}}
:hidden:
{option}

{pages}
```
"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Join this to the build."""
    app.connect("source-read", as_site)
    app.connect("build-finished", front_page)
    for language, lexer in LEXERS.items():
        app.add_lexer(language, lexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def as_site(app: Sphinx, page: str, source: list[str]) -> None:
    """Change the text of a page to what the site shows."""
    text = source[0]
    if page == INDEX:
        text += "".join(sidebar(text))
    if page == DECISIONS:
        text += TOCTREE.format(option=":glob:", pages="*")
    if page.startswith(PYTHON):
        text = with_docstrings(text)
    text = UPWARD.sub(lambda found: link(Path(app.srcdir), page, found[1], found[2] or ""), text)
    text = FENCE.sub(r"```{code-block} \1\n:caption: \2", text)
    source[0] = PICTURE.sub(lambda found: picture(Path(app.srcdir), found[1], found[2]), text)


def sidebar(index: str) -> Iterator[str]:
    """Yield a list of pages for each heading of the index; a page stands under the last heading that names it."""
    heading = ""
    headings: dict[str, str] = {}
    for line in index.splitlines():
        if found := HEADING.match(line):
            heading = found[1]
        for page in PAGE.findall(line):
            if headings.get(page) != heading:
                headings.pop(page, None)
                headings[page] = heading
    for caption, named in groupby(headings, key=headings.__getitem__):
        yield TOCTREE.format(option=f":caption: {caption}", pages="\n".join(named))


def with_docstrings(text: str) -> str:
    """Return a page about a package with all of each docstring."""
    found = PACKAGE.search(text)
    assert found, text
    module = import_module(found[1])
    return ENTRY.sub(lambda one: DOCSTRING.format(name=one[1], **documented(module, one[1])), text)


def documented(module: ModuleType, name: str) -> dict[str, str]:
    """Return how autodoc finds a public name."""
    thing = getattr(module, name)
    kind = "class" if isinstance(thing, type) else "function" if callable(thing) else "data"
    return {"kind": kind, "package": module.__name__, "members": "   :members:" if kind == "class" else ""}


def link(docs: Path, page: str, path: str, anchor: str) -> str:
    """Return the end of a link to a Markdown file; `path:` says that the file is not a page of the site."""
    inside = (docs / page).parent.joinpath(path).resolve().is_relative_to(docs.resolve())
    return f"]({path}{anchor})" if inside else f"](<path:{path}>)"


def picture(docs: Path, name: str, shows: str) -> str:
    """Return a picture in light and in dark, or nothing where none was drawn."""
    schemes = [scheme for scheme in ("light", "dark") if (docs / PICTURES / f"{name}-{scheme}.png").exists()]
    return "\n".join(
        f"```{{image}} /{PICTURES}/{name}-{scheme}.png\n:alt: {shows}\n:class: only-{scheme}\n```" for scheme in schemes
    )


def front_page(app: Sphinx, error: Exception | None) -> None:
    """Let the folder of the site open with the index."""
    if error is None and app.builder.name == "html":
        shutil.copyfile(Path(app.outdir) / f"{INDEX}.html", Path(app.outdir) / "index.html")
