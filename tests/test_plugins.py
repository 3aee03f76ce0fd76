"""Loading what a user's file holds: each mistake is where its maker can fix it."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asking import asked
from vivavoce import extensions, hookspecs, run_suite
from vivavoce.conversations.format import Loss, format_named
from vivavoce.conversations.reading import detect, read
from vivavoce.errors import Problem, UsageError
from vivavoce.extensions import PluginWarning, plugins
from vivavoce.grading.extractors import extractors
from vivavoce.messages import HumanMessage
from vivavoce.metrics.factory import metrics
from vivavoce.models.model import Request
from vivavoce.models.names import model_identity, model_name, open_model
from vivavoce.pacing.limits import Budget, RateLimit
from vivavoce.penelope.strategies.factory import strategies
from vivavoce.plugins import HOOKS, Registry, load_object
from vivavoce.report.export import export, format_of
from vivavoce.store.store import Store
from vivavoce.suites.command_line import described_target, target_names
from vivavoce.targets.function import as_target


def problem_of(reference: str, base: Path) -> Problem:
    with pytest.raises(UsageError) as caught:
        load_object(reference, base)
    [problem] = caught.value.problems
    return problem


def test_a_wrong_reference_has_no_place_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def answer(message): ...\n")
    assert problem_of("bot.py:anwser", tmp_path) == Problem("bot.py has no 'anwser'; did you mean 'answer'?")
    assert problem_of("absent.py:f", tmp_path).file is None
    assert problem_of("bot:answer", tmp_path) == Problem("'bot:answer' does not have the form file.py:name")


def test_a_file_that_raises_is_the_place(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("import os\n\nraise OSError('no model')\n")
    assert problem_of("bot.py:f", tmp_path) == Problem(
        "raises OSError on import: no model", (tmp_path / "bot.py").resolve(), 3
    )


@pytest.mark.parametrize("line", ["from letta_evals.runner import Runner", "from letta_evals import Runner"])
def test_a_file_that_needs_more_of_letta_evals_is_told_to_install_it(line: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"\n{line}\n")
    problem = problem_of("mine.py:f", tmp_path)
    assert problem.line == 2
    assert problem.message.endswith("only what a suite's files need is here: install letta-evals for the rest")


def test_names_of_letta_evals_are_there_only_while_a_file_is_executed(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text("from letta_evals.models import GradeResult\n")
    (tmp_path / "mine.py").write_text(
        "import letta_evals.decorators\nfrom letta_evals import grader\nfrom parts import GradeResult\n"
        "@grader\ndef good(sample, submission) -> GradeResult:\n    return GradeResult(score=1.0)\n"
    )
    assert load_object("mine.py:good", tmp_path)(None, "x").score == 1.0
    assert [name for name in sys.modules if name.partition(".")[0] == "letta_evals"] == []
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("letta_evals")


def test_a_decorator_of_letta_evals_says_which_parameters_it_takes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from letta_evals.decorators import grader\n@grader\ndef good(row, answer): ...\n"
    )
    assert "good takes (row, answer); letta-evals calls it with (sample, submission)" in str(
        problem_of("mine.py:good", tmp_path)
    )


def test_a_package_that_is_installed_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "installed/letta_evals").mkdir(parents=True)
    (tmp_path / "installed/letta_evals/__init__.py").write_text("NAME = 'theirs'\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "installed"), *sys.path])
    (tmp_path / "mine.py").write_text("from letta_evals import NAME\n")
    try:
        assert load_object("mine.py:NAME", tmp_path) == "theirs"
    finally:
        sys.modules.pop("letta_evals", None)


def test_names_that_the_client_of_letta_had_first_are_answered_while_a_file_is_executed(tmp_path: Path) -> None:
    letta_client = pytest.importorskip("letta_client")
    (tmp_path / "mine.py").write_text(
        "from letta_client import AsyncLetta, CreateBlock, LettaMessageUnion, MessageCreate, ToolCallMessage\n"
        "from letta_client.client import BaseTool\nblock = CreateBlock(label='a', value='b')\n"
    )
    assert load_object("mine.py:block", tmp_path) == {"label": "a", "value": "b"}
    assert load_object("mine.py:ToolCallMessage", tmp_path) is letta_client.types.agents.ToolCallMessage
    assert not hasattr(letta_client, "CreateBlock")
    assert not hasattr(letta_client, "client")


def test_a_name_that_the_client_of_letta_never_had_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("letta_client")
    (tmp_path / "mine.py").write_text("from letta_client import CreateBlok\n")
    assert "cannot import name 'CreateBlok' from 'letta_client'" in problem_of("mine.py:f", tmp_path).message


def test_each_file_imports_its_own_neighbours(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "neighbour_of_a_bot.py").write_text(f"NAME = {name!r}\n")
        (folder / "bot.py").write_text("from neighbour_of_a_bot import NAME\n")
    assert [load_object(f"{name}/bot.py:NAME", tmp_path) for name in ("a", "b", "a")] == ["a", "b", "a"]


def test_a_neighbour_that_changed_is_imported_again(tmp_path: Path) -> None:
    (tmp_path / "neighbour_that_changes.py").write_text("NAME = 'a'\n")
    (tmp_path / "bot.py").write_text("from neighbour_that_changes import NAME\n")
    assert load_object("bot.py:NAME", tmp_path) == "a"
    (tmp_path / "neighbour_that_changes.py").write_text("NAME = 'changed'\n")
    assert load_object("bot.py:NAME", tmp_path) == "changed"


def test_a_change_of_equal_length_within_a_second_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "ours").mkdir()
    files = [tmp_path / name for name in ("bot.py", "words.py", "ours/words.py")]
    for number, moment in ((1, 1_000_000_000_100_000_000), (2, 1_000_000_000_600_000_000)):
        files[0].write_text(f"import ours.words\nimport words\nsaid = ({number}, words.said, ours.words.said)")
        for file in files[1:]:
            file.write_text(f"said = {number}")
        for file in files:
            os.utime(file, ns=(moment, moment))
        assert load_object("bot.py:said", tmp_path) == (number,) * 3


def test_the_path_of_the_program_stays_as_it_is(tmp_path: Path) -> None:
    before = list(sys.path)
    (tmp_path / "beside_a_bot.py").write_text("")
    (tmp_path / "bot.py").write_text("import beside_a_bot\n")
    load_object("bot.py:beside_a_bot", tmp_path)
    assert sys.path == before


def test_a_neighbour_does_not_hide_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "tabnanny.py").write_text("")
    (tmp_path / "bot.py").write_text("import tabnanny\n")
    assert load_object("bot.py:tabnanny", tmp_path).__file__ != str(tmp_path / "tabnanny.py")


def install(folder: Path, package: str, code: str, **modules: str) -> None:
    """Put a package with a plugin into a folder as an installer leaves it there; `modules` stand beside it."""
    for name, text in {package: f"from vivavoce.extensions import hookimpl\n{code}", **modules}.items():
        (folder / f"{name}.py").write_text(text)
    known = folder / f"{package}-1.0.dist-info"
    known.mkdir()
    (known / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text(f"[vivavoce]\n{package} = {package}\n")


def adding(hook: str, **references: str) -> str:
    """Return the code of a hook that returns references by name."""
    return f"@hookimpl\ndef {hook}():\n    return {references!r}\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages; what they add is forgotten at the end."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    importlib.invalidate_caches()
    plugins.cache_clear()
    yield folder
    plugins.cache_clear()
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


GREETINGS = """\
from vivavoce.penelope.strategies.free import Improvise


def greets(sample, submission):
    return "hello" in submission.lower()


def first_word(trajectory, config):
    return trajectory[0][-1].text.split()[0]


def half(ctx):
    return 0.5


class Shout(Improvise):
    pass
"""
HOOKED = "".join(
    (
        adding("register_graders", greets="greetings:greets"),
        adding("register_extractors", first_word="greetings:first_word"),
        adding("register_strategies", shout="greetings:Shout"),
        adding("register_reward_composers", half="greetings:half"),
    )
)


def test_a_package_adds_what_its_hooks_return(packages: Path, tmp_path: Path) -> None:
    install(packages, "greetings_plugin", HOOKED, greetings=GREETINGS)
    assert {"greets", "contains"} <= set(metrics.names())
    assert "greetings" not in sys.modules  # a name is known before its module is imported
    assert strategies.get("shout").__name__ == "Shout"
    (tmp_path / "bot.py").write_text("def reply(message):\n    return 'Hello there'\n")
    (tmp_path / "suite.yaml").write_text(
        "name: s\ndataset: {rows: [{id: a, input: hi}]}\ntarget: {kind: function, function: 'bot.py:reply'}\n"
        "graders: {polite: {kind: function, function: greets, extractor: first_word}}\n"
        "reward: {kind: custom, function: half}\n"
    )
    (outcome,) = run_suite(tmp_path / "suite.yaml", store=str(tmp_path / "x.db")).outcomes()
    assert (outcome.scores["polite"].value, outcome.scores["polite"].submission) == (1.0, "Hello")
    assert outcome.reward is not None
    assert outcome.reward.value == 0.5


def test_a_package_replaces_nothing_that_is_built_in(packages: Path) -> None:
    install(packages, "greedy", adding("register_graders", contains="greedy:contains", other="greedy:other"))
    assert "greedy" not in repr(metrics.get("contains"))
    with pytest.warns(PluginWarning, match="'greedy' is switched off: register_graders: it adds the metric 'contains'"):
        assert "other" not in metrics.names()


def test_two_packages_with_one_name_are_named_and_the_first_works(packages: Path) -> None:
    for package in ("one", "other"):
        install(packages, package, adding("register_extractors", twice=f"{package}_parts:twice"))
        (packages / f"{package}_parts.py").write_text(f"def twice(view): return {package!r}\n")
    with pytest.warns(PluginWarning, match="'other' is switched off: .* 'twice', which the plugin 'one' adds too"):
        assert "twice" in extractors.names()
    twice: Any = extractors.get("twice")
    assert twice(None) == "one"


def test_one_reference_may_be_added_twice(packages: Path) -> None:
    for package in ("one", "other"):
        install(packages, package, adding("register_extractors", twice="parts:twice"))
    (packages / "parts.py").write_text("def twice(view): ...\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "twice" in extractors.names()


def test_every_kind_of_thing_has_its_hooks() -> None:
    hooks = [hook for names in HOOKS.values() for hook in names]
    assert len(hooks) == len(set(hooks))
    assert all(hasattr(hookspecs, hook) for hook in hooks)
    registering = {name for name in vars(hookspecs) if name.startswith("register_")}
    assert registering - set(hooks) == {"register_commands", "register_routes", "register_page_files"}


BAD_ANSWERS = {
    "return 3": "needs a mapping from names to .*, got int",
    "return ['a']": "needs a mapping from names to .*, got list",
    "return {'': 'a:b'}": "'' cannot be the name",
    "return {1: 'a:b'}": "1 cannot be the name",
    "return {'a': 'b'}": "the .* 'a' has 'b'; it needs a reference",
    "return {'a': print}": "it needs a reference",
    "raise ValueError('no luck')": "ValueError: no luck",
    "raise SystemExit(3)": "SystemExit: 3",
    "import time; time.sleep(60)": "no answer within 0.2 seconds",
}


@pytest.mark.parametrize("body", BAD_ANSWERS)
@pytest.mark.parametrize(("kind", "hook"), [(kind, hook) for kind, hooks in HOOKS.items() for hook in hooks])
def test_a_hook_that_answers_wrongly_switches_its_plugin_off(
    kind: str, hook: str, body: str, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "HOOK_SECONDS", 0.2)
    registry = Registry[Any](kind, {})
    built_in = set(registry.names())
    extensions.plugins.cache_clear()
    install(packages, "good", adding(hook, good="good_parts:thing"), good_parts="def thing(): ...\n")
    install(packages, "zealous", f"@hookimpl\ndef {hook}():\n    {body}\n")
    with pytest.warns(PluginWarning, match=f"'zealous' is switched off: {hook}: .*{BAD_ANSWERS[body]}"):
        assert set(registry.names()) - built_in == {"good"}
    assert callable(registry.get("good"))


BROKEN = {
    "raise ImportError('no such part')": "ImportError: no such part",
    "raise SystemExit('stop')": "SystemExit: stop",
    "": "has no attribute 'thing'",
    "thing = 3": "must be callable, got int",
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_thing_that_cannot_be_loaded_is_an_error_where_it_is_used(code: str, packages: Path) -> None:
    install(packages, "broken", adding("register_extractors", odd="broken_parts:thing"), broken_parts=code)
    install(packages, "sound", adding("register_extractors", even="sound_parts:thing"))
    (packages / "sound_parts.py").write_text("def thing(view): ...\n")
    with pytest.raises(UsageError, match=f"'broken'.*{BROKEN[code]}"):
        extractors.get("odd")
    with pytest.warns(PluginWarning, match=f"'broken' is switched off: .*{BROKEN[code]}"):
        names = [name for name, _ in extractors.entries()]
    assert "even" in names
    assert "odd" not in names


@pytest.mark.parametrize("thing", ["class thing: ...", "thing = dict", "thing = 3", "thing = 'contains'"])
def test_a_metric_of_a_plugin_is_a_metric_or_a_function(thing: str, packages: Path) -> None:
    install(packages, "odd_metric", adding("register_metrics", odd="odd_parts:thing"), odd_parts=thing)
    with pytest.raises(UsageError, match=r"'odd' of the plugin 'odd_metric' is .*; it must be a subclass of Base"):
        metrics.get("odd")


MODELS = """\
class Echo:
    def generate(self, prompt, schema=None):
        return prompt

class Whole:
    name = "acme:small"
    async def complete(self, request): ...
    async def close(self): ...

def echo(name, *, settings=None): return Echo()
def whole(name, **options): return Whole()
def alias(name): return "openai:gpt"
def broken(name): raise KeyError("region")
"""


def model_packages(packages: Path) -> None:
    references = {name: f"acme_models:{name}" for name in ("echo", "alias", "broken")}
    code = adding("register_models", acme="acme_models:whole", **references)
    install(packages, "acme_plugin", code, acme_models=MODELS)


def test_a_plugin_opens_models_by_name(packages: Path) -> None:
    model_packages(packages)
    model = open_model("echo:loud", settings={"temperature": 0})
    assert (model.name, model_name("echo:loud"), model_identity("echo/loud")) == ("echo:loud",) * 3
    assert asyncio.run(model.complete(Request([HumanMessage(content="hi")]))).text == "hi"
    assert open_model("acme:small", api_key="k", structured="tool").name == "acme:small"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ecko:loud", {}, "no provider 'ecko'; did you mean 'echo'"),
        ("acme:large", {}, "a model named 'acme:small'; expected 'acme:large'"),
        ("alias:a", {}, "returns a str; it returns a model"),
        ("broken:a", {}, "'broken' of a plugin failed: KeyError: 'region'"),
        ("echo:loud", {"api_key": "k"}, "takes no API key"),
        ("echo:loud", {"structured": "tool"}, "takes no way to structured answers"),
        ("alias:a", {"settings": {"temperature": 0}}, "takes no settings"),
        ("echo:loud", {"rate": RateLimit(3, None)}, "takes no rate limit"),
        ("echo:loud", {"budget": Budget(max_calls=3)}, "takes no limit on calls or cost"),
    ],
)
def test_a_model_that_a_plugin_cannot_open_is_an_error(
    name: str, options: dict[str, Any], message: str, packages: Path
) -> None:
    model_packages(packages)
    with pytest.raises(UsageError, match=re.escape(message)):
        open_model(name, **options)


FRAMEWORKS = """\
from vivavoce.messages import AIMessage
from vivavoce.targets.framework import Framework
from vivavoce.targets.target import Reply

class Talk:
    id = None
    async def send(self, messages, token):
        return Reply([AIMessage(content=messages[-1].text.upper())])
    async def close(self): ...

class Shouter: ...

async def open(thing, beginning): return Talk()
def raising(thing): raise ZeroDivisionError("adapts")

LOUD = Framework("Loud", "loud", "1.0", lambda thing: isinstance(thing, Shouter), open)
RAISES = Framework("Raises", "raises", "1.0", raising, open)
OTHER = open
"""


async def test_an_object_of_a_framework_that_a_plugin_adds_is_a_target(packages: Path) -> None:
    install(packages, "loud", adding("register_frameworks", loud="loud_parts:LOUD"), loud_parts=FRAMEWORKS)
    thing = importlib.import_module("loud_parts").Shouter()
    (reply,) = await asked(as_target(thing, "desk"), "hello")
    assert [message.text for message in reply.messages] == ["HELLO"]
    with pytest.raises(UsageError, match="LangChain or LangGraph, Loud; got a dict"):
        as_target({})


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("RAISES", "the framework 'odd' of the plugin 'loud' failed: ZeroDivisionError: adapts"),
        ("OTHER", "the framework 'odd' of the plugin 'loud' is a function; it must be a vivavoce.targets"),
    ],
)
def test_a_framework_of_a_plugin_that_cannot_be_used_is_named(name: str, problem: str, packages: Path) -> None:
    install(packages, "loud", adding("register_frameworks", odd=f"loud_parts:{name}"), loud_parts=FRAMEWORKS)
    if name == "RAISES":
        with pytest.raises(UsageError, match=problem):
            as_target(object())
    else:
        with pytest.warns(PluginWarning, match=problem), pytest.raises(UsageError, match="a function is needed"):
            as_target(object())


FORMATS = """\
from vivavoce.conversations.format import Format

def read(records, loss):
    for record in records:
        yield record.place, {"id": "a", "messages": [{"role": "user", "content": record.value["words"]}]}

def wrong(records, loss):
    yield {"id": "a"}

def odd(record): return record.fields is not None and "words" in record.fields
def raising(record): raise ZeroDivisionError("fits")

WORDS = Format("words", "Words", odd, read)
PAIRS = Format("pairs", "Pairs", lambda record: False, wrong)
RAISES = Format("raises", "Raises", raising, read)
OTHER = Format("other", "Other", odd, read)
NEITHER = Format("neither", "Neither", odd)
FUNCTION = read
"""


def test_a_format_of_a_plugin_is_found_and_its_failures_name_it(packages: Path, tmp_path: Path) -> None:
    plugin = adding("register_formats", words="some_formats:WORDS", pairs="some_formats:PAIRS")
    install(packages, "formats_plugin", plugin, some_formats=FORMATS)
    path = tmp_path / "said.jsonl"
    path.write_text('{"words": "hi"}\n{"other": 1}\n')
    assert detect(path).name == "words"
    with pytest.raises(UsageError, match="the format 'words' of the plugin 'formats_plugin' failed: KeyError: 'words'"):
        list(read(path, format_named("words"), Loss()))
    with pytest.raises(UsageError, match=r"'pairs' of the plugin .* its reader yields a dict, not a pair"):
        list(read(path, format_named("pairs"), Loss()))
    with pytest.raises(UsageError, match="no format 'word'; did you mean 'words'"):
        format_named("word")


@pytest.mark.parametrize(
    ("references", "message"),
    [
        ({"raises": "some_formats:RAISES"}, "the format 'raises' of the plugin .* failed: ZeroDivisionError: fits"),
        ({"another": "some_formats:OTHER"}, "'another' .* has the name 'other'; both names must match"),
        ({"neither": "some_formats:NEITHER"}, "has neither a reader nor a writer"),
        ({"function": "some_formats:FUNCTION"}, "is a function; it must be a vivavoce.conversations.format.Format"),
        ({"absent": "some_formats:ABSENT"}, "cannot load its format 'absent' from some_formats:ABSENT"),
    ],
)
def test_a_bad_format_does_not_keep_others_from_being_found(
    references: dict[str, str], message: str, packages: Path, tmp_path: Path
) -> None:
    install(packages, "bad_formats", adding("register_formats", **references), some_formats=FORMATS)
    install(packages, "good_formats", adding("register_formats", words="some_formats:WORDS"))
    path = tmp_path / "said.jsonl"
    path.write_text('{"words": "hi"}\n')
    with pytest.warns(PluginWarning, match=f"'bad_formats' is switched off: .*{message}"):
        assert detect(path).name == "words"


TARGETS = """\
import functools
from vivavoce.targets.function import FunctionTarget

def bot(name, *, greeting: str = "Hello", limit: int):
    return lambda message: greeting * limit

def ready(name):
    return FunctionTarget(lambda message: "ready", "its own name")

def anything(name, **options):
    return lambda message: repr(sorted(options))

def broken(name):
    raise ConnectionError("no such host")

def nothing(name): ...
"""
SUITE = """\
name: s
dataset: {{rows: [{{id: a, input: hi}}]}}
target: {}
graders: {{g: {{kind: function, function: ascii_printable_only}}}}
"""


def suite_with(packages: Path, target: str) -> Path:
    """Return a suite with a target, where a package adds kinds of target."""
    names = ("bot", "ready", "anything", "broken", "nothing")
    code = adding("register_targets", **{name: f"acme_targets:{name}" for name in names})
    install(packages, "targets_plugin", code, acme_targets=TARGETS)
    path = packages.parent / "suite.yaml"
    path.write_text(SUITE.format(target))
    return path


@pytest.mark.parametrize(
    ("target", "name", "reply"),
    [
        ("{kind: bot, config: {limit: 2}}", "bot", "HelloHello"),
        ("{kind: bot, name: twin, config: {limit: 1, greeting: '${ACME_GREETING}'}}", "twin", "Moin"),
        ("{kind: ready}", "ready", "ready"),
        ("{kind: anything, config: {a: [1], b: {c: 2}}}", "anything", "['a', 'b']"),
    ],
)
def test_a_suite_uses_a_target_of_a_plugin(
    target: str, name: str, reply: str, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_GREETING", "Moin")
    (outcome,) = run_suite(suite_with(packages, target), store=str(packages / "x.db")).outcomes()
    assert outcome.attempt.key.target == name
    assert outcome.attempt.trajectory.turns[0].messages[-1].text == reply


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("{kind: bott, config: {limit: 2}}", "target.kind: no kind 'bott'; did you mean 'bot'?"),
        ("{kind: bot}", "the target kind 'bot': the option 'limit' is missing"),
        (
            "{kind: bot, config: {limit: many}}",
            "the target kind 'bot': option 'limit': Input should be a valid integer",
        ),
        ("{kind: bot, config: {limit: 1, greting: x}}", "no option 'greting'; did you mean 'greeting'?"),
        ("{kind: bot, config: 3}", "target.config: needs a mapping"),
        ("{kind: ready, config: {a: 1}}", "no option 'a'; it takes none"),
        ("{kind: broken}", "the target kind 'broken' of a plugin failed: ConnectionError: no such host"),
        ("{kind: nothing}", "got a NoneType"),
        ("{kind: bot, config: {limit: 1, greeting: '${ACME_NOWHERE}'}}", "ACME_NOWHERE is not set"),
        ("{kind: anything, config: {inner: [{token: s3cret}]}}", "inner.0.token contains a key"),
    ],
)
def test_a_mistake_in_a_target_of_a_plugin_has_its_place(target: str, message: str, packages: Path) -> None:
    path = suite_with(packages, target)
    with pytest.raises(UsageError) as caught:
        run_suite(path, store=str(packages / "x.db"))
    [problem] = caught.value.problems
    assert (problem.file, problem.line) == (path, 3)
    assert message in str(problem)
    assert "s3cret" not in str(problem)


def test_a_stored_target_is_read_without_its_plugin() -> None:
    described = described_target({"kind": "bot", "config": {"limit": 1}, "name": "twin"})
    assert described.names_and_models == [("twin", None)]
    assert target_names({"kind": "bot"}) == ["bot"]


EXPORTERS = """\
from vivavoce.report.export import Exporter

def lines(graded, out):
    for outcome in graded.outcomes():
        print(outcome.attempt.key.sample_id, file=out)

def broken(graded, out):
    print("half", file=out)
    raise LookupError("no column")

LINES = Exporter(lines, ".lines", "text/x-lines")
SUFFIX = Exporter(lines, "../x")
TYPE = Exporter(lines, ".x", "text/x\\r\\nset-cookie: a=b")
CLASS = Exporter
NUMBER = 3
"""


def exporter_packages(packages: Path) -> None:
    names = {
        "lines": "LINES",
        "broken": "broken",
        "suffix": "SUFFIX",
        "type": "TYPE",
        "class": "CLASS",
        "number": "NUMBER",
    }
    code = adding("register_exporters", **{name: f"acme_exporters:{place}" for name, place in names.items()})
    install(packages, "exporters_plugin", code, acme_exporters=EXPORTERS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "the export format 'broken' of the plugin 'exporters_plugin' failed: LookupError: no column"),
        ("suffix", "has the file extension '../x'"),
        ("type", "has the content type"),
        ("class", "needs a function that takes a graded run and a text file"),
        ("number", "needs a function that takes a graded run and a text file"),
        ("line", "no export format 'line'; did you mean 'lines'?"),
    ],
)
def test_an_exporter_that_fails_is_named_and_leaves_no_file(name: str, message: str, packages: Path) -> None:
    exporter_packages(packages)
    (packages.parent / "bot.py").write_text("def reply(message):\n    return 'Hello'\n")
    (packages.parent / "suite.yaml").write_text(SUITE.format("{kind: function, function: 'bot.py:reply'}"))
    result = run_suite(packages.parent / "suite.yaml", store=str(packages / "x.db"))
    with Store.open(packages / "x.db") as store:
        run = store.run(result.run.id)
        grading = store.grading(run.id)
        with pytest.raises(UsageError, match=re.escape(message)):
            export(store, run, grading, name, packages / "file")
        assert not (packages / "file").exists()
        export(store, run, grading, "lines", packages / "good.lines")
        assert (packages / "good.lines").read_text() == "a\n"


def test_a_file_extension_names_the_format_of_a_plugin(packages: Path) -> None:
    exporter_packages(packages)
    names = {"good": "acme_exporters:LINES"}
    install(packages, "another_plugin", adding("register_exporters", **names))
    with pytest.warns(PluginWarning, match="'exporters_plugin' is switched off"):
        assert format_of(None, Path("run.LINES")) == "good"
    with pytest.raises(UsageError, match=r"run\.lined: unknown file extension"):
        format_of(None, Path("run.lined"))
