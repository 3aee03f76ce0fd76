"""Rubrics: the text a judge is given, with `{{ name }}` variables, or `{name}` as letta-evals writes them.

A rubric that shows neither the submission nor the conversation is followed by the input, the ground truth and the
submission, so that a judge always sees what it judges.

Values come from datasets and from the system under test, so each is put in as prompts put them in: as a JSON string on
one line, which no text can end.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from jinja2 import TemplateError, meta

from vivavoce.errors import GraderFault, UsageError, did_you_mean
from vivavoce.metrics.prompts import Prompt, Wording
from vivavoce.safe_template import SafeEnvironment
from vivavoce.safe_text import quoted

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
