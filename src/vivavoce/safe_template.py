"""Templates written by other people: Jinja with a small language, and bounds on what a rendering may cost.

Jinja's own sandbox keeps a template away from Python objects. It does not bound the work: `{{ 9**9**9 }}` cannot be
interrupted once the interpreter computes it, and nested loops over long texts never end. So this sandbox accepts only
names, attributes, items, tests, comparisons, `if`, `for` over lists and mappings, and a few filters; it never folds
constants, it limits the size of a template, and it counts the steps and the characters of each rendering before the
work is done. A filter takes no arguments, except those in `ARGUMENTS`: an argument could multiply the work.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sized, ValuesView
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from math import isfinite
from typing import Any, cast

from jinja2 import (
    Environment,
    StrictUndefined,
    Template,
    TemplateRuntimeError,
    TemplateSyntaxError,
    Undefined,
    nodes,
    pass_context,
)
from jinja2.nodes import EvalContext
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from vivavoce.work_time import counted_work

MAX_TEMPLATE_CHARS = 200_000
"""Characters of the text of a template."""

MAX_NODES = 5_000
"""Parts of a template: each variable, text, test, and branch is one or two; 5,000 compile in half a second."""

MAX_DEPTH = 40
"""Levels to which expressions and blocks of a template may be nested."""

MAX_STEPS = 100_000
"""Steps of one rendering: a turn of a loop takes one for each ten parts of its body, and what reads a value takes one
for each ten items and each thousand characters of it."""

MAX_OUTPUT_CHARS = 20_000_000
"""Characters that one rendering may produce."""

CHARS_PER_STEP = 1_000
CHARS_OF_NUMBER = 8
ITEMS_PER_STEP = 10
PARTS_PER_STEP = 10
MAX_SEPARATOR_CHARS = 100
"""Characters of the text that `join` writes between two items."""

FILTERS = frozenset(
    """
    capitalize count d default first int join last length list lower string title tojson trim upper
    """.split()  # noqa: SIM905
)
"""Filters of Jinja that a template may use: none makes much more of what it is given."""

ARGUMENTS: Mapping[str, frozenset[str]] = {
    "d": frozenset(("default_value", "boolean")),
    "default": frozenset(("default_value", "boolean")),
    "join": frozenset(("d",)),
}
"""Arguments that a filter may be given, by position or by name; that of `join` is a short text in quotes."""

_CHEAP = frozenset("count d default first last length".split())  # noqa: SIM905
"""Filters that read no more of a value than its type and its length."""

TESTS = frozenset(
    """
    boolean defined eq equalto even false float in integer iterable mapping ne none number odd sequence string true
    undefined == !=
    """.split()  # noqa: SIM905
)
"""Tests of Jinja that a template may use, after `is`."""

_BLOCK_NAMES = frozenset(("self", "super"))
"""Names of Jinja that render a block of the template, also inside that block, and so without an end."""

METHODS = frozenset(("items", "keys", "values"))
"""Methods that a template may call, without arguments."""

_ALLOWED: tuple[type[nodes.Node], ...] = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Const,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.If,
    nodes.For,
    nodes.CondExpr,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Filter,
    nodes.Test,
    nodes.Tuple,
    nodes.List,
    nodes.Dict,
    nodes.Pair,
    nodes.Keyword,
    nodes.Block,
)
_OPERATORS = {
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "Div": "/",
    "FloorDiv": "//",
    "Mod": "%",
    "Pow": "**",
    "Concat": "~",
    "Neg": "-",
    "Pos": "+",
    "Assign": "set",
    "AssignBlock": "set",
    "Macro": "macro",
    "CallBlock": "call",
    "FilterBlock": "filter",
    "With": "with",
    "Include": "include",
    "Import": "import",
    "FromImport": "from",
    "Extends": "extends",
    "ScopedEvalContextModifier": "autoescape",
}
MAX_NESTED_LOOPS = 15
"""Loops inside one another; Python compiles at most 20."""

_LOOP = "bounded_loop"
"""The filter that every `for` passes its values through; a template cannot name it, as it is not in FILTERS."""
_CHARGE = "charged_value"
"""The filter that everything is passed through that is compared, searched, or cut into slices."""


class TemplateTooLarge(TemplateRuntimeError):
    """A rendering took more steps or produced more characters than a template may."""


def _too_long() -> TemplateTooLarge:
    return TemplateTooLarge(f"produces more than {MAX_OUTPUT_CHARS:,} characters")


@dataclass(slots=True)
class _Budget:
    """What is left for the rendering in progress."""

    steps: int = MAX_STEPS
    chars: int = MAX_OUTPUT_CHARS

    def take_steps(self, count: int) -> None:
        self.steps -= count
        if self.steps < 0:
            raise TemplateTooLarge(f"takes more than {MAX_STEPS:,} steps")

    def take_chars(self, count: int) -> None:
        self.chars -= count
        if self.chars < 0:
            raise _too_long()

    def read(self, value: object) -> int:
        """Take the steps of going through a value while it is measured, and return how many characters it has."""
        chars = 0
        items = 0
        pending: list[Iterable[object]] = [(value,)]
        while pending:
            for item in pending.pop():
                items += 1
                if items % ITEMS_PER_STEP == 0:
                    self.take_steps(1)
                if isinstance(item, str | bytes):
                    chars += len(item)
                elif isinstance(item, Mapping):
                    rows = cast("Mapping[object, object]", item)
                    pending += (rows.keys(), rows.values())
                elif isinstance(item, list | tuple | set | frozenset | KeysView | ValuesView | ItemsView):
                    pending.append(cast("Iterable[object]", item))
                else:
                    chars += _chars_of_number(item)
        self.take_steps(chars // CHARS_PER_STEP)
        return chars


def _chars_of_number(value: object) -> int:
    """Return how many characters a number counts for: the work of writing one grows with the square of its digits."""
    digits = value.bit_length() // 3 if isinstance(value, int) else 0
    return CHARS_OF_NUMBER + digits**2 // CHARS_OF_NUMBER


_budget: ContextVar[_Budget] = ContextVar("template_budget")


def _charging(write: Callable[[Any], object]) -> Callable[[Context, object], object]:
    """Return what turns a value into text by `write`; what is in the value is charged before.

    Raises:
        TemplateRuntimeError: it is a function or another object of Python.
    """

    @pass_context
    def show(_context: Context, value: object) -> object:
        if isinstance(value, Undefined):
            return write(value)
        if callable(value):
            raise TemplateRuntimeError("a function cannot be rendered as text")
        budget = _budget.get()
        if budget.read(value) > budget.chars:
            raise _too_long()
        return write(value)

    return show


def _identity(value: object) -> object:
    return value


class SafeTemplate(Template):
    """A template whose renderings are bounded."""

    def render(self, *args: Any, **kwargs: Any) -> str:
        """Return the text.

        Raises:
            TemplateTooLarge: it would take too many steps or characters; nothing is returned.
            GraderFault: no time is left for its request.
        """
        budget = _Budget()
        token = _budget.set(budget)
        try:
            pieces: list[str] = []
            with counted_work():
                context = self.new_context(dict(*args, **kwargs))
                try:
                    for piece in self.root_render_func(context):
                        budget.chars -= len(piece)
                        if budget.chars < 0:
                            raise _too_long()
                        pieces.append(piece)
                except Exception:
                    self.environment.handle_exception()
            return "".join(pieces)
        finally:
            _budget.reset(token)


class SafeEnvironment(ImmutableSandboxedEnvironment):
    """Compiles templates of the small language.

    Raises:
        TemplateSyntaxError: when a template is compiled: it uses something that the language does not have.
    """

    template_class = SafeTemplate

    def __init__(self, *, finalize: Callable[[Any], object] = _identity, **options: Any) -> None:
        finalizer = _charging(finalize)
        super().__init__(undefined=StrictUndefined, optimized=False, cache_size=0, finalize=finalizer, **options)
        self.globals.clear()
        bounded = {name: _charge_filter(name, self.filters[name]) for name in FILTERS}
        self.filters = {**bounded, _LOOP: _loop_values, _CHARGE: _charged_value}
        self.tests = {name: self.tests[name] for name in TESTS}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        if len(source) > MAX_TEMPLATE_CHARS:
            raise TemplateSyntaxError(
                f"the template has {len(source):,} characters, at most {MAX_TEMPLATE_CHARS:,} allowed", 1
            )
        try:
            tree = super()._parse(source, name, filename)
            _check(tree)
        except RecursionError as error:
            raise TemplateSyntaxError(f"the template is nested more than {MAX_DEPTH} levels deep", 1) from error
        return cast("nodes.Template", _CountWork().visit(tree))

    def evaluate(self, expression: str) -> Callable[[Mapping[str, Any]], object]:
        """Compile an expression to a function that returns its value for given variables."""
        self.parse(f"{{{{ {expression} }}}}")  # checks the language, which `compile_expression` does not
        compute = self.compile_expression(expression, undefined_to_none=False)

        def value(values: Mapping[str, Any]) -> object:
            token = _budget.set(_Budget())
            try:
                with counted_work():
                    return compute(values)
            finally:
                _budget.reset(token)

        return value


class _CountWork(NodeTransformer):
    """Passes the values of loops, and what is compared, searched, or cut into slices, through counting filters."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802  # the name that Jinja calls
        self.generic_visit(node)
        steps = 1 + sum(1 for _ in _walk(node)) // PARTS_PER_STEP
        node.iter = _apply_filter(cast("nodes.Expr", node.iter), _LOOP, nodes.Const(steps, lineno=node.lineno))
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:  # noqa: N802  # the name that Jinja calls
        self.generic_visit(node)
        node.expr = _apply_filter(node.expr, _CHARGE)
        for operand in node.ops:
            operand.expr = _apply_filter(operand.expr, _CHARGE)
        return node

    def visit_Test(self, node: nodes.Test) -> nodes.Test:  # noqa: N802  # the name that Jinja calls
        self.generic_visit(node)
        node.args = [_apply_filter(argument, _CHARGE) for argument in node.args]
        if node.args:
            node.node = _apply_filter(node.node, _CHARGE)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Getitem:  # noqa: N802  # the name that Jinja calls
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _apply_filter(node.node, _CHARGE)
        return node


def _apply_filter(node: nodes.Expr, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, [*args], [], None, None, lineno=node.lineno)


def _walk(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield all parts of a node, at any depth."""
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        pending += part.iter_child_nodes()


def _check(tree: nodes.Node) -> None:
    """Refuse what the language does not have, and a template with too many parts.

    Raises:
        TemplateSyntaxError: it names the construct and its line.
    """
    count = 0
    pending = [(tree, 0, 0)]
    while pending:
        node, depth, loops = pending.pop()
        count += 1
        loops += isinstance(node, nodes.For)
        if loops > MAX_NESTED_LOOPS:
            raise TemplateSyntaxError(f"the template has more than {MAX_NESTED_LOOPS} nested loops", node.lineno or 1)
        if depth > MAX_DEPTH:
            raise TemplateSyntaxError(f"the template is nested more than {MAX_DEPTH} levels deep", node.lineno or 1)
        if count > MAX_NODES:
            raise TemplateSyntaxError(f"the template has more than {MAX_NODES:,} parts", node.lineno or 1)
        _check_node(node)
        pending += [(child, depth + 1, loops) for child in node.iter_child_nodes()]


def _check_node(node: nodes.Node) -> None:
    def refuse(what: str) -> TemplateSyntaxError:
        return TemplateSyntaxError(f"{what} is not allowed in a template", node.lineno or 1)

    if isinstance(node, nodes.Call):
        _check_call(node, refuse)
    elif isinstance(node, nodes.Neg) and isinstance(node.node, nodes.Const):
        pass  # the index of the last item
    elif not isinstance(node, _ALLOWED):
        kind = type(node).__name__
        raise refuse(f"'{_OPERATORS.get(kind, kind.lower())}'")
    if isinstance(node, nodes.Name) and node.name in _BLOCK_NAMES:
        raise refuse(f"'{node.name}', which renders a block once more,")
    if isinstance(node, nodes.Filter):
        _check_filter(node, refuse)
    if isinstance(node, nodes.Const) and isinstance(node.value, float) and not isfinite(node.value):
        raise refuse("a number that is too large")
    if isinstance(node, nodes.Test) and node.name not in TESTS:
        raise refuse(f"the test '{node.name}'")
    if isinstance(node, nodes.For) and node.recursive:
        raise refuse("a recursive loop")
    if _holds_variables(node):  # held twice, a variable would double with each loop around the list
        raise refuse("a list, tuple, or mapping with values other than numbers, text, and such lists")


def _check_filter(node: nodes.Filter, refuse: Callable[[str], TemplateSyntaxError]) -> None:
    if node.name not in FILTERS:
        raise refuse(f"the filter '{node.name}'")
    names = ARGUMENTS.get(node.name, frozenset())
    if node.dyn_args or node.dyn_kwargs or len(node.args) + len(node.kwargs) > len(names):
        raise refuse(f"this argument of the filter '{node.name}'")
    if unknown := next((pair.key for pair in node.kwargs if pair.key not in names), None):
        raise refuse(f"the argument '{unknown}' of the filter '{node.name}'")
    if node.name == "join":
        for value in (*node.args, *(pair.value for pair in node.kwargs)):
            if not isinstance(value, nodes.Const | nodes.TemplateData) or not isinstance(
                text := value.value if isinstance(value, nodes.Const) else value.data, str
            ):
                raise refuse("a 'join' separator that is not quoted text")
            if len(text) > MAX_SEPARATOR_CHARS:
                message = f"the template joins with {len(text):,} characters, at most {MAX_SEPARATOR_CHARS} allowed"
                raise TemplateSyntaxError(message, node.lineno or 1)


_LITERALS = (nodes.Const, nodes.Neg, nodes.TemplateData, nodes.List, nodes.Dict, nodes.Tuple, nodes.Pair)


def _holds_variables(node: nodes.Node) -> bool:
    """Return whether a node builds a list, tuple, or mapping of anything but literals."""
    if not isinstance(node, nodes.List | nodes.Dict) and not (isinstance(node, nodes.Tuple) and node.ctx == "load"):
        return False
    return not all(isinstance(part, _LITERALS) for part in _parts_of(node))


def _parts_of(node: nodes.Node) -> Iterator[nodes.Node]:
    for child in node.iter_child_nodes():
        yield from child.iter_child_nodes() if isinstance(child, nodes.Pair) else (child,)


def _check_call(node: nodes.Call, refuse: Callable[[str], TemplateSyntaxError]) -> None:
    method = node.node.attr if isinstance(node.node, nodes.Getattr) else None
    if method not in METHODS or node.args or node.kwargs or node.dyn_args or node.dyn_kwargs:
        raise refuse(f"a call of '{method}'" if method else "a call")


def _loop_values(values: object, steps: int) -> Iterator[Any]:
    """Yield the values of a loop, each for the steps of one turn; only lists and mappings can be gone through."""
    if isinstance(values, Undefined):
        str(values)  # a strict undefined says here what is missing
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TemplateRuntimeError(f"a loop needs a list or a mapping, got {type(values).__name__}")
    budget = _budget.get()
    for value in cast("Iterable[Any]", values):
        budget.take_steps(steps)
        yield value


def _charged_value(value: object) -> object:
    """Return a value, and charge for its size: whoever compares, searches, or cuts it goes through all of it."""
    budget = _budget.get()
    budget.take_steps(1)
    budget.read(value)
    return value


def _charge_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that takes the steps of what it reads, and the characters of what it writes, before it works."""

    @wraps(function)
    def run_charged(*args: Any, **kwargs: Any) -> Any:
        budget = _budget.get(None)
        if budget is None:  # Jinja tries filters of constants out while it compiles; this sandbox never asks it to
            raise TemplateRuntimeError(f"the filter '{name}' is used outside a template")
        budget.take_steps(1)
        if name not in _CHEAP:
            values = [arg for arg in args if not isinstance(arg, Environment | EvalContext)]
            for value in values:
                budget.read(value)
            if name == "join":
                _check_joined(budget, *values, *kwargs.values())
            elif name == "list" and isinstance(values[0], str):
                budget.take_steps(len(values[0]) // ITEMS_PER_STEP)
        return function(*args, **kwargs)

    return run_charged


def _check_joined(budget: _Budget, items: object, separator: str = "") -> None:
    """Take the characters of the separators that `join` would write."""
    if isinstance(items, Sized):  # also a text, whose characters are joined
        budget.take_chars(len(separator) * len(items))
