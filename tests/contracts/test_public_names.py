"""The public names: each can be imported, is listed once, and its signature changes only on purpose."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import vivavoce

PACKAGES = (
    *("", ".metrics", ".models", ".penelope", ".penelope.checks", ".penelope.strategies", ".penelope.tools"),
    *(".targets", ".tools", ".testing"),
)
SNAPSHOT = Path(__file__).with_name("public_names.txt")
SEEDS = (
    *("BaseLLM", "AnthropicLLM", "VertexAILLM", "PenelopeAgent", "EndpointTarget", "GoalAchievementJudge"),
    *("ConversationHistory", "ConversationTurn", "MultiTurnEvaluationInput", "evaluate_conversation"),
    *("evaluate_test_result", "BaseMultiTurnMetric", "MetricConfig", "MetricResult"),
    *("SingleTurnSample", "MultiTurnSample", "HumanMessage", "AIMessage", "ToolMessage", "ToolCall"),
)
"""Names that the documents of the three first systems import."""


def typed_names(package: str) -> set[str]:
    """Return the names that a type checker sees in a package."""
    tree = ast.parse(Path(import_module(package).__file__ or "").read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname for node in imports for alias in node.names if alias.asname}


def lines() -> list[str]:
    """Return a line for each public name: where it is, and its signature."""
    listed: list[str] = []
    for package in PACKAGES:
        module = import_module(f"vivavoce{package}")
        for name in module.__all__:
            if name.startswith("__"):
                continue
            thing = getattr(module, name)
            listed.append(
                f"vivavoce{package}.{name}{'' if not callable(thing) or is_plain(thing) else parameters(thing)}"
            )
    return listed


def is_plain(thing: object) -> bool:
    """Return whether a thing is an enum or an exception, whose signature depends on the version of Python."""
    return isinstance(thing, type) and issubclass(thing, Enum | Exception)


def parameters(thing: Callable[..., Any]) -> str:
    """Return the parameters of a function or class with their defaults, without types."""
    signature = inspect.signature(thing)
    shown = [
        parameter.replace(annotation=parameter.empty, default=plain(parameter.default))
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=shown, return_annotation=signature.empty))


def plain(default: Any) -> Any:
    """Return a default whose text has no address in it."""
    return Name(default.__name__) if inspect.isfunction(default) else default


class Name(str):
    """A text that is shown without quotation marks."""

    def __repr__(self) -> str:
        return str(self)


def test_every_change_of_a_public_name_or_signature_is_made_on_purpose() -> None:
    """To accept a change: python tests/contracts/test_public_names.py."""
    assert lines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_type_checker_sees_the_names_that_are_there(package: str) -> None:
    module = import_module(f"vivavoce{package}")
    here = {name for name in module.__all__ if name in vars(module)}
    also = set(SEEDS) if package == "" else set[str]()
    typed = typed_names(module.__name__)
    assert typed | here == set(module.__all__) | (typed & also)
    assert set(module.__all__) <= set(dir(module))


def test_a_name_that_newcomers_import_first_is_that_of_its_package() -> None:
    for name in SEEDS:
        assert inspect.unwrap(getattr(vivavoce, name)).__name__ == name
    assert vivavoce.GoalAchievementJudge is import_module("vivavoce.metrics").GoalAchievementJudge


def test_a_star_imports_the_listed_names() -> None:
    space: dict[str, object] = {}
    exec("from vivavoce.metrics import *", space)
    assert set(import_module("vivavoce.metrics").__all__) <= set(space)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(vivavoce, "NoSuchName")
    with pytest.raises(ImportError, match="NoSuchName"):
        exec("from vivavoce import NoSuchName")


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(lines()) + "\n", encoding="utf-8")
