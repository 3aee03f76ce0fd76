"""Prompts: the instructions for a judge, as templates in text files, and rubrics that people write.

A template is Jinja in a small sandbox (`safe_template`). Values come from datasets, targets and users, so whatever
`{{ … }}` puts in is written as a JSON string on one line; a name without a value is an error, never an empty place.
The parts that a user may replace on their own stand in `{% block … %}`.

A rubric that shows neither the submission nor the conversation is followed by the input, the ground truth and the
submission, so that a judge always sees what it judges.

Values come from datasets and from the system under test, so each is put in as prompts put them in: as a JSON string on
one line, which no text can end.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from jinja2 import TemplateError, meta

from vivavoce.errors import GraderFault, SuiteFault, UsageError, did_you_mean
from vivavoce.plugins import lazy
from vivavoce.records.score import shorten
from vivavoce.safe_template import SafeEnvironment
from vivavoce.safe_text import quoted

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from jinja2.nodes import Node


HERE = Path(__file__).parent
_SINGLE = re.compile(r"(?<!\{)\{\s*(\w+)\s*\}(?!\})")
"""A variable as `str.format` has it, which a template leaves as it is."""


@dataclass(frozen=True)
class Prompt:
    """A template, with blocks of it replaced; `name` says where it comes from, `allowed` which variables it may use.

    Raises:
        UsageError: when it is checked: it is not a template, or a variable or a block does not exist.
    """

    text: str
    name: str
    allowed: frozenset[str]
    blocks: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def hash(self) -> str:
        """A hash of the words, stored with every score they produced."""
        text = "\0".join([self.text, *(f"{name}\0{text}" for name, text in sorted(self.blocks.items()))])
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def render(self, values: Mapping[str, object]) -> str:
        """Return the prompt with the values put in.

        Raises:
            SuiteFault: a value does not fit the template, or the prompt would be too large.
        """
        from jinja2 import TemplateError

        try:
            return self.template.render(values)
        except RecursionError as error:
            raise SuiteFault(f"{self.name} cannot be rendered: it is nested too deeply", kind="prompt") from error
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise SuiteFault(f"{self.name} cannot be rendered: {shorten(str(error))}", kind="prompt") from error

    @cached_property
    def template(self) -> Template:
        """The template, checked."""
        return _compiled(self.text, self.name, self.allowed, tuple(sorted(self.blocks.items())))


def read_prompt(file: str, allowed: frozenset[str], override: str | Path | None, blocks: Mapping[str, str]) -> Prompt:
    """Return the prompt in a file of the package, or the one given in its place as a text or a path.

    Raises:
        UsageError: the path cannot be read, or the template cannot be used, as one with `{goal}` for `{{ goal }}`.
    """
    if override is None:
        prompt = Prompt(_packaged(file), file, allowed, blocks)
    elif isinstance(override, Path):
        prompt = Prompt(_text_of(override), str(override), allowed, blocks)
    else:
        prompt = Prompt(override, "the prompt", allowed, blocks)
    _ = prompt.template
    return prompt


@lru_cache(256)
def _compiled(text: str, name: str, allowed: frozenset[str], blocks: tuple[tuple[str, str], ...]) -> Template:
    """Return a template, checked; compiling one takes as long as a hundred renderings."""
    from jinja2 import TemplateError, meta, nodes

    environment = _environment()
    try:
        tree = environment.parse(text)
        named = {block.name: block for block in tree.find_all(nodes.Block)}
        # Jinja drops the last line break of a source, which a block keeps
        sources = {block: environment.parse(f"{source}\n") for block, source in blocks}
        for block, source in sources.items():
            if block not in named:
                raise UsageError(f"{name} has no block '{block}'{did_you_mean(block, named)}")
            named[block].body = source.body
        for variable in (match[1] for source in (text, *dict(blocks).values()) for match in _SINGLE.finditer(source)):
            if variable in allowed:
                raise UsageError(f"{name} has {{{variable}}}, which is never filled; write {{{{ {variable} }}}}")
        for variable in sorted(meta.find_undeclared_variables(tree) - allowed):
            raise UsageError(f"{name} asks for '{variable}'{did_you_mean(variable, allowed)}")
        _dissolve_blocks(tree)
        return environment.from_string(tree)
    except (TemplateError, ValueError) as error:  # such as a number with too many digits
        raise UsageError(f"{name} is not a template: {error}") from error


def _dissolve_blocks(node: Node) -> None:
    """Put what blocks hold in their place: they name parts to replace, and take work in each rendering."""
    from jinja2 import nodes

    for child in node.iter_child_nodes():
        _dissolve_blocks(child)
    for name, held in node.iter_fields():
        if isinstance(held, list):
            parts = cast("list[Node]", held)
            inner = [part.body if isinstance(part, nodes.Block) else [part] for part in parts]
            setattr(node, name, [part for some in inner for part in some])


@cache
def _packaged(file: str) -> str:
    return (HERE / file).read_text(encoding="utf-8").rstrip("\n")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the prompt {path} cannot be read: {error}") from error


@cache
def _environment() -> Environment:
    # most readers of this module render nothing, and Jinja takes a while to load
    environment = lazy("vivavoce.safe_template:SafeEnvironment")
    return environment(autoescape=False, trim_blocks=True, lstrip_blocks=True, finalize=_quoted)


def _quoted(value: Any) -> Any:
    if value is None:
        raise SuiteFault(
            "the prompt uses a value that this conversation lacks; guard it with {% if … %}", kind="prompt"
        )
    if isinstance(value, str):
        return value if isinstance(value, Wording) else quoted(value)
    return quoted(cast("object", value)) if isinstance(value, Mapping | list | tuple) else value


class Wording(str):
    """Words of ours, or of whoever made the metric, which are put in as they are."""

    __slots__ = ()


Syntax = Literal["jinja", "letta", "replace"]
"""`{{ name }}`; `{name}` with doubled braces for literal ones; or `{name}` for declared names and nothing else."""

STANDARD = ("input", "ground_truth", "submission", "conversation")
_SANDBOX = SafeEnvironment()
"""Finds variables; nothing is rendered in it."""
_FIELD = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Rubric:
    """A rubric's text and its syntax; `name` says where it stands, `declared` are the names that `replace` fills."""

    text: str
    syntax: Syntax
    name: str = "rubric"
    declared: frozenset[str] = frozenset(STANDARD)

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names that the rubric asks for."""
        if self.syntax == "jinja":
            try:
                names = frozenset(meta.find_undeclared_variables(_SANDBOX.parse(self.text)))
            except TemplateError as error:
                raise UsageError(f"{self.name} is not a template: {error}") from error
            _ = Prompt(self.text, self.name, names).template
            return names
        names = frozenset(name for name in _FIELD.findall(self.text) if name)
        return names & self.declared if self.syntax == "replace" else names

    @cached_property
    def hash(self) -> str:
        """A hash of the text, stored with every score it produced."""
        return hashlib.blake2b(self.text.encode(), digest_size=8).hexdigest()

    def render(self, values: Mapping[str, Any]) -> str:
        """Return the text with every value put in, quoted.

        Raises:
            GraderFault: the rubric asks for a variable that the sample does not give.
        """
        for variable in sorted(self.variables):
            if variable not in values:
                raise GraderFault(f"{self.name} asks for '{variable}'{did_you_mean(variable, values)}", kind="options")
        texts = {name: _own_lines("" if value is None else value) for name, value in values.items()}
        shown = self.variables & {"submission", "conversation"}
        missing = [] if shown else [name for name in _APPENDED if values.get(name) is not None]
        return self._filled(texts) + "".join(f"\n\n{_APPENDED[name]}: {_put_in(texts[name])}" for name in missing)

    def _filled(self, values: Mapping[str, Any]) -> str:
        names = self.variables
        if self.syntax == "replace":
            texts = {name: _put_in(values[name]) for name in names}
            return re.sub(r"\{(\w+)\}", lambda match: texts.get(match[1], match[0]), self.text)
        if self.syntax == "letta":
            return _FIELD.sub(lambda match: _put_in(values[match[1]]) if match[1] else match[0][0], self.text)
        return Prompt(self.text, self.name, names).render({name: values[name] for name in names})


_APPENDED = {"input": "Input", "ground_truth": "Ground truth", "submission": "Submission"}


def read_rubric(text: str, known: frozenset[str] | set[str], name: str = "rubric") -> Rubric:
    """Return a rubric with its syntax found from the variables in it; `known` are the names that may occur.

    Raises:
        UsageError: both syntaxes name a variable, so one of them would stay unfilled.
    """
    double = {variable for variable in re.findall(r"\{\{-?\s*([A-Za-z_]\w*)", text) if variable in known}
    single = {variable for variable in re.findall(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})", text) if variable in known}
    if double and single:
        raise UsageError(f"{name} mixes {{{{ {min(double)} }}}} and {{{min(single)}}}; write all variables one way")
    return Rubric(text, "letta" if single else "jinja", name)


def _own_lines(value: Any) -> Any:
    """Return lines that are quoted already so that they begin on a line of their own; any other value as it is."""
    return Wording(f"\n{value}") if isinstance(value, Wording) else value


def _put_in(value: Any) -> str:
    return value if isinstance(value, Wording) else quoted(value)
