"""Report names and phrases that a native reader would stumble over, and list the sentences that users read.

    names.py                     check every tracked file; exit with 1 if a folder has more than its allowance
    names.py --shrink            lower the allowances to what the folders have
    names.py --show PATH ...     print every name and phrase of these files, allowed or not
    names.py --sentences SURFACE print the sentences of one surface: messages, help, pages, reports or docstrings

The lists are in plain_words.txt. plain_words_allowed.txt holds the number of names and of phrases that each folder at
the top may still have. Numbers in it only go down.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from sentences import SURFACES, Function, sentences, strings

ROOT = Path(__file__).parents[1]
WORDS = "tools/plain_words.txt"
ALLOWED = "tools/plain_words_allowed.txt"
HEAD = "# Names and phrases that each folder may still have. Written by: python tools/names.py --shrink\n"
TEXTS = (".html", ".j2", ".js", ".md", ".sh", ".yaml", ".yml", ".toml", ".txt")
"""Endings of files that are checked as a whole; those of Python are checked by their names, strings and comments."""
Rules = list[tuple[re.Pattern[str], str]]


class Problem(NamedTuple):
    """A name or a phrase, and what to write instead."""

    path: str
    line: int
    is_name: bool
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {'name' if self.is_name else 'phrase'} '{self.text}'; write {self.advice}"


class Words:
    """The sections of plain_words.txt."""

    def __init__(self, text: str) -> None:
        sections: dict[str, list[str]] = {}
        current: list[str] = []
        for line in text.splitlines():
            if heading := re.match(r"\[(\w+)\]", line):
                current = sections.setdefault(heading[1], [])
            elif line.strip() and not line.startswith("#"):
                current.append(line)
        self.names, self.functions, self.constants = (
            _rules(sections.get(section, []), r"(?:{})\Z") for section in ("names", "functions", "constants")
        )
        self.phrases = _rules(sections.get("phrases", []), "{}")
        self.any_phrase = re.compile("|".join(rule.pattern for rule, _ in self.phrases) or r"\Z.", re.IGNORECASE)
        self.excluded = sections.get("excluded", [])

    def advice(self, name: str, *, is_function: bool = False) -> str | None:
        """Return what to write instead of a name, None for a good one."""
        bare = name.strip("_")
        rules = [*self.names, *(self.functions if is_function else []), *(self.constants if bare.isupper() else [])]
        return next((advice for rule, advice in rules if rule.match(bare)), None)

    def in_text(self, path: str, line: int, text: str) -> Iterator[Problem]:
        """Yield the phrases of a text that starts in this line."""
        flat = " ".join(text.split())
        if not self.any_phrase.search(flat):
            return
        lines = [number for number, each in enumerate(text.split("\n"), line) for _ in each.split()]
        for rule, advice in self.phrases:
            for match in rule.finditer(flat):
                place = lines[flat.count(" ", 0, match.start() + 1)]
                yield Problem(path, place, False, match[0].strip(), advice)

    def is_excluded(self, path: str) -> bool:
        """Return whether a file is not checked."""
        return any(fnmatch(path, pattern) for pattern in self.excluded)


def _rules(lines: Sequence[str], form: str) -> Rules:
    pairs = (line.partition(" -> ") for line in lines)
    return [(re.compile(form.format(pattern), re.IGNORECASE), advice) for pattern, _, advice in pairs]


def problems_of(path: str, text: str, words: Words) -> Iterator[Problem]:
    """Yield every bad name and phrase of a file."""
    if not path.endswith(".py"):
        yield from words.in_text(path, 1, text)
        return
    nodes = list(ast.walk(ast.parse(text)))
    for line, name, is_function in [(1, Path(path).stem, False), *_names(nodes)]:
        if advice := words.advice(name, is_function=is_function):
            yield Problem(path, line, True, name, advice)
    for line, sentence in [*strings(nodes), *_comments(text)]:
        yield from words.in_text(path, line, sentence)


def _names(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str, bool]]:
    """Yield the line of each name that a file defines, the name, and whether it is one of a function."""
    for node in nodes:
        if isinstance(node, Function):
            yield node.lineno, node.name, not any("property" in ast.dump(each) for each in node.decorator_list)
        elif isinstance(node, ast.ClassDef):
            yield node.lineno, node.name, False
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg, False
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr, False


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each block of comments."""
    lines = text.splitlines()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline) if "#" in text else ()
    comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    for first in comments:
        if first - 1 in comments and lines[first - 2].lstrip().startswith("#"):
            continue
        last = first
        while last + 1 in comments and lines[last].lstrip().startswith("#"):
            last += 1
        yield first, "\n".join(comments[line].lstrip("# ") for line in range(first, last + 1))


def checked_files(words: Words) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each tracked or new file that is checked."""
    listing = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    for path in sorted(set(subprocess.run(listing, capture_output=True, text=True, check=True).stdout.splitlines())):
        is_checked = path.endswith((".py", *TEXTS)) and path not in (WORDS, ALLOWED)
        if is_checked and (ROOT / path).is_file() and not words.is_excluded(path):
            yield path, (ROOT / path).read_text("utf-8")


def folder_of(path: str) -> str:
    """Return the folder at the top that a file is in."""
    return path.split("/", 1)[0] if "/" in path else "."


def problems_by_folder(words: Words) -> dict[str, list[Problem]]:
    """Return the problems of each folder, in the order of the files."""
    folders: dict[str, list[Problem]] = {}
    for path, text in checked_files(words):
        folders.setdefault(folder_of(path), []).extend(problems_of(path, text, words))
    return folders


def changed_files() -> set[str]:
    """Return the files that differ from the last commit, and all where there is none."""
    paths: set[str] = set()
    for command in (["diff", "--name-only", "HEAD"], ["ls-files", "--others", "--exclude-standard"]):
        result = subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=False)
        paths.update(result.stdout.splitlines())
    return paths


def read_allowances() -> dict[str, tuple[int, int]]:
    """Return how many names and phrases each folder may have."""
    lines = (ROOT / ALLOWED).read_text("utf-8").splitlines() if (ROOT / ALLOWED).exists() else []
    rows = (line.split(maxsplit=2) for line in lines if line and not line.startswith("#"))
    return {path: (int(names), int(phrases)) for names, phrases, path in rows}


def count(problems: Sequence[Problem]) -> tuple[int, int]:
    """Return the number of names and of phrases."""
    names = sum(problem.is_name for problem in problems)
    return names, len(problems) - names


def check(words: Words) -> int:
    """Print what exceeds the allowances, and return the exit code."""
    allowances, changed, is_exceeded = read_allowances(), changed_files(), False
    for folder, problems in problems_by_folder(words).items():
        allowed = allowances.get(folder, (0, 0))
        for kind, (number, limit) in enumerate(zip(count(problems), allowed, strict=True)):
            if number > limit:
                is_exceeded = True
                label = ("names", "phrases")[kind]
                print(f"{folder}: {number} {label} of {WORDS}, at most {limit} allowed; rewrite what you added,")
                print(f"these are not committed (names.py --show {folder} lists all):")
                recent = [problem for problem in problems if problem.path in changed and problem.is_name is (kind == 0)]
                print(*(f"  {problem}" for problem in recent), sep="\n")
    return int(is_exceeded)


def shrink(words: Words) -> int:
    """Lower each allowance to what its folder has, and remove those of folders without any."""
    allowances = read_allowances()
    lines = [HEAD]
    for folder, problems in sorted(problems_by_folder(words).items()):
        numbers, limits = count(problems), allowances.get(folder, (0, 0))
        names, phrases = (min(pair) for pair in zip(numbers, limits, strict=True))
        if names or phrases:
            lines.append(f"{names} {phrases} {folder}\n")
    (ROOT / ALLOWED).write_text("".join(lines), "utf-8")
    return 0


def show(words: Words, paths: Sequence[str]) -> int:
    """Print every problem of these files and folders."""
    for path, text in checked_files(words):
        if any(path == each or path.startswith(each.rstrip("/") + "/") for each in paths):
            print(*sorted(problems_of(path, text, words)), sep="\n", end="\n" if path else "")
    return 0


def main(words: Sequence[str]) -> int:
    """Do what the command line asks for, and return the exit code."""
    plain_words = Words((ROOT / WORDS).read_text("utf-8"))
    match words:
        case []:
            return check(plain_words)
        case ["--shrink"]:
            return shrink(plain_words)
        case ["--show", _, *_]:
            return show(plain_words, words[1:])
        case ["--sentences", surface] if surface in SURFACES:
            for place, sentence in sentences(ROOT, surface):
                print(f"{place}: {' '.join(sentence.split())}")
            return 0
        case _:
            print((__doc__ or "").strip(), file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
