"""The sentences that users of `viva` read, by where they read them. `tools/names.py --sentences` prints them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from vivavoce.cli.main import commands

SURFACES = ("messages", "help", "pages", "reports", "docstrings")
Function = ast.FunctionDef | ast.AsyncFunctionDef
Sentence = tuple[str, str]
"""A place, `path:line`, and a text."""
_MAKES_MESSAGE = re.compile(r"(error|problem|mistake|warn\w*|note|notes|refused|fault|fail)\Z", re.IGNORECASE)
"""Ends of the names of functions and classes that take, or return, a message."""
_MARKUP = re.compile(r"{#.*?#}|{%.*?%}|<!--.*?-->|<(script|style)\b.*?</\1>", re.DOTALL)
_ATTRIBUTE = re.compile(r'\b(?:title|alt|placeholder|aria-label)="([^"]*)"')
_FILLED = re.compile(r"{{.*?}}", re.DOTALL)
_TAG = re.compile(r"<(?:{{.*?}}|[^>])*>")
_LITERAL = re.compile(r"'([^'\n]* [^'\n]*)'|\"([^\"\n]* [^\"\n]*)\"")


def sentences(root: Path, surface: str) -> Iterator[Sentence]:
    """Yield the sentences of a surface, in the order of files and lines."""
    package = root / "src" / "vivavoce"
    if surface == "pages":
        for path in sorted((*package.rglob("*.html"), *package.rglob("*.js"))):
            yield from ((f"{path.relative_to(root)}:{line}", text) for line, text in _template_texts(path))
        return
    exports = _exports(package) if surface == "docstrings" else {}
    for path in sorted(package.rglob("*.py")):
        tree, module = (
            ast.parse(path.read_text("utf-8")),
            ".".join(path.relative_to(package.parent).with_suffix("").parts),
        )
        match surface:
            case "messages":
                texts = _messages(tree)
            case "help":
                texts = _help(tree, path.relative_to(package))
            case "reports":
                texts = _reports(tree, path.relative_to(package))
            case _:
                texts = _public_docstrings(tree, exports.get(module, set()))
        yield from ((f"{path.relative_to(root)}:{line}", text) for line, text in sorted(set(texts)))


def _exports(package: Path) -> dict[str, set[str]]:
    """Return the names that packages import into their `__init__`, by the module that defines them."""
    exports: dict[str, set[str]] = {}
    for path in package.rglob("__init__.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                exports.setdefault(node.module, set()).update(alias.name for alias in node.names)
    return exports


def text_of(node: ast.AST | None) -> str | None:
    """Return the text of a string, with {} around what is filled in; None for something else."""
    match node:
        case ast.JoinedStr():
            return "".join(text_of(part) or "" for part in node.values)
        case ast.FormattedValue():
            return f"{{{ast.unparse(node.value)}}}"
        case ast.Constant(value=str()):
            return node.value
        case _:
            return None


def strings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each string of more than one word; those of docstrings, too."""
    texts = [node for node in nodes if isinstance(node, ast.JoinedStr | ast.Constant)]
    parts = {id(part) for node in texts if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in texts:
        text = None if id(node) in parts else text_of(node)
        if text and " " in text.strip():
            yield node.lineno, text


def _messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield what exceptions, warnings, and functions that are named after problems say."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) or (
            isinstance(node, ast.Call) and _MAKES_MESSAGE.search(ast.unparse(node.func))
        ):
            yield from strings(ast.walk(node))
        elif isinstance(node, Function) and _MAKES_MESSAGE.search(node.name):
            yield from (
                each for part in ast.walk(node) if isinstance(part, ast.Return) for each in strings(ast.walk(part))
            )


def _help(tree: ast.Module, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the help of options, of commands, and the lines that list commands."""
    module = ".".join(("vivavoce", *path.with_suffix("").parts))
    functions = {command.function for command in commands().values()}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "help" and (text := text_of(node.value)):
            yield node.value.lineno, text
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("Command", "extensions.Command"):
            yield from strings(ast.walk(node))
    for node in tree.body:
        if isinstance(node, Function) and f"{module}:{node.name}" in functions:
            text = ast.get_docstring(node)
            yield from [(node.lineno, text)] if text else []
    if path == Path("cli", "main.py"):
        yield from (each for node in tree.body if isinstance(node, ast.AnnAssign) for each in strings(ast.walk(node)))


def _reports(tree: ast.AST, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings of what writes reports and pages, without docstrings."""
    if "report" not in path.parts and path.parts[0] != "features" and "pages" not in path.parts:
        return
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) in bare:
            node.value = None
    yield from strings(ast.walk(tree))


def _public_docstrings(tree: ast.Module, names: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of these classes and functions, and of the public methods of such classes."""
    public = [node for node in tree.body if isinstance(node, Function | ast.ClassDef) and node.name in names]
    methods = [method for node in public if isinstance(node, ast.ClassDef) for method in node.body]
    for node in (*public, *methods):
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            text = ast.get_docstring(node)
            yield from [(node.lineno, text)] if text else []


def _template_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a page template, or the literals of a script, that have more than one word."""
    source = path.read_text("utf-8")
    if path.suffix == ".js":
        matches = ((match.start(), match[1] or match[2]) for match in _LITERAL.finditer(source))
    else:
        source = _MARKUP.sub(_blank, source)
        attributes = [(match.start(1), match[1]) for match in _ATTRIBUTE.finditer(source)]
        texts = [(match.start(), match[0]) for match in re.finditer(r"[^\0]+", _TAG.sub(_blank, source))]
        matches = iter(sorted((*attributes, *texts)))
    for start, text in matches:
        if " " in text.strip() and re.search(r"[a-z]{2}", _FILLED.sub("", text)):
            yield source.count("\n", 0, start + len(text) - len(text.lstrip())) + 1, _FILLED.sub("{}", text.strip())


def _blank(match: re.Match[str]) -> str:
    """Return what separates texts, as long as the match and with its ends of lines."""
    return "\0" + re.sub(r"[^\n]", "\0", match[0][1:])
