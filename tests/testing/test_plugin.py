"""The plugin for pytest, in calls of pytest of its own."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

from vivavoce.store.store import Store

pytest_plugins = ["pytester"]

BOT = """
def reply(message):
    return "Which order is it?" if "money" in message else "You get EUR 20.00 back."
"""
SUITE = """
name: refunds
target: {kind: function, function: "bot.py:reply"}
dataset:
  rows:
    - {id: refund, input: ["I want my money back.", "1042"], expect: [{contains: order}, {numeric: 24.90}]}
    - {id: opening, tags: [first], input: "my money", expect: {all: [{contains: order}]}}
"""
GATED = """
name: gated
target: {kind: function, function: "bot.py:reply"}
dataset:
  rows:
    - {id: a, input: my money, ground_truth: order}
    - {id: b, input: hello, ground_truth: voucher}
    - {id: c, input: hello, ground_truth: back}
graders: {said: {kind: function, function: contains}}
gate: {kind: simple, metric_key: said, value: VALUE}
"""
SPEAK = """
import pytest
from vivavoce.testing import viva_assert

def spoken(*said):
    return [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 9, said)]
"""


@pytest.fixture(autouse=True)
def _only_this_plugin(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Load the plugin by its module, whether or not it is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "vivavoce.testing.plugin")


def write(pytester: pytest.Pytester, **files: str) -> None:
    for name, text in {"bot.py": BOT, **files}.items():
        (pytester.path / name.replace("__", ".")).write_text(text, encoding="utf-8")


def runs(pytester: pytest.Pytester) -> dict[str, list[str]]:
    """Return the conversations of each run by the name of its suite."""
    with Store.open(str(pytester.path / ".vivavoce" / "vivavoce.db"), create=False) as store:
        return {
            run.suite: [f"{attempt.key.sample_id}#{attempt.key.trial}" for attempt in store.attempts(run.id)]
            for run in store.runs()
        }


def test_it_costs_nothing_until_it_is_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys
        def test_nothing_is_loaded():
            ours = {name for name in sys.modules if name.startswith("vivavoce.")}
            plugin = {f"vivavoce.testing{name}" for name in ("", ".plugin", ".pytest_call", ".running")}
            assert ours == {"vivavoce.lazy_names", *plugin}
            assert {"pydantic", "sqlalchemy", "rich", "aiohttp", "numpy"} & set(sys.modules) == set()
        """
    )
    write(pytester, shop__viva__yaml=SUITE)
    result = pytester.runpytest_subprocess("--strict-markers")
    result.assert_outcomes(passed=1)
    assert not (pytester.path / ".vivavoce").exists()
    result.stdout.no_fnmatch_line("*= viva =*")


def test_each_sample_of_a_suite_is_a_test_that_says_what_was_wrong(pytester: pytest.Pytester) -> None:
    write(pytester, shop__viva__yaml=SUITE)
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result = pytester.runpytest_inprocess("--viva")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "expect: turn 2: the number is 20.00, expected 24.9 ± 0, said 'You get EUR 20.00 back.'",
            "  turn 2",
            "       user  1042",
            "  assistant  You get EUR 20.00 back.",
            "  ✗ expect 0.50  gives 24.9: the number is 20.00, expected 24.9 ± 0",
            "the whole conversation: viva show refunds-?????? refund",
            "refunds · 2 conversations · expect 0.750 · fail*· viva show refunds-??????",
            "FAILED shop.viva.yaml::refund - Failed: expect: turn 2*",
        ]
    )
    assert runs(pytester) == {"refunds": ["refund#0", "opening#0"]}


@pytest.mark.parametrize(
    "how", [("suite.yaml",), ("--viva", "suite.yaml"), ("--viva", "other.yml", "suite.yaml::refund")]
)
def test_a_suite_of_another_name_is_collected_where_it_is_named(
    pytester: pytest.Pytester, how: tuple[str, ...]
) -> None:
    write(pytester, suite__yaml=SUITE, other__yml=SUITE.replace("refunds", "others"))
    result = pytester.runpytest_inprocess(*how)
    result.assert_outcomes(failed=1 if len(how) < 3 else 2, passed=1)
    result.stdout.no_fnmatch_line("not collected*")


def test_a_file_that_is_named_and_no_suite_is_left_to_others(pytester: pytest.Pytester) -> None:
    write(pytester, other__yml=SUITE)
    result = pytester.runpytest_inprocess("other.yml")
    result.assert_outcomes()
    result.stdout.no_fnmatch_line("not collected*")


@pytest.mark.parametrize("workers", [(), ("-p", "xdist.plugin", "-n", "2")], ids=["one process", "two workers"])
def test_a_suite_that_is_not_collected_is_named(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    (pytester.path / "shop").mkdir()
    (pytester.path / "shop" / "suite.yaml").write_text(SUITE)
    result = pytester.runpytest_subprocess("--viva", *workers)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    text = "not collected: shop/suite.yaml; name it (pytest shop/suite.yaml), or call it NAME.viva.yaml"
    assert result.outlines.count(text) == 1
    pytester.runpytest_inprocess().stdout.no_fnmatch_line("not collected*")


@pytest.mark.parametrize("how", [("shop.viva.yaml::opening",), ("--viva", "-k", "first"), ("--viva", "-k", "opening")])
def test_only_what_was_chosen_is_held(pytester: pytest.Pytester, how: tuple[str, ...]) -> None:
    write(pytester, shop__viva__yaml=SUITE)
    result = pytester.runpytest_inprocess(*how)
    result.assert_outcomes(passed=1, deselected=None if "::" in how[0] else 1)
    assert runs(pytester) == {"refunds": ["opening#0"]}


def test_a_test_is_found_again_by_the_name_that_is_shown(pytester: pytest.Pytester) -> None:
    suite = SUITE.replace("id: refund", r'id: "shop::refund\n::error::x [1]"')
    write(pytester, shop__viva__yaml=suite)
    result = pytester.runpytest_inprocess("--viva", "-v")
    name = "shop.viva.yaml::shop: :refund : :error: :x [1]"
    assert [line for line in result.outlines if line.startswith("::")] == []
    result.stdout.fnmatch_lines([f"{name.replace('[', '[[]')} FAILED*", r"*viva show refunds-?????? 'shop::refund*"])
    again = pytester.runpytest_inprocess(name)
    again.assert_outcomes(failed=1)


def test_only_the_targets_that_were_chosen_are_asked(pytester: pytest.Pytester) -> None:
    target = "{kind: openai, base_url: 'http://127.0.0.1:9/v1', model_handles: [m1, m2], max_retries: 0}"
    write(pytester, two__viva__yaml=SUITE.replace('{kind: function, function: "bot.py:reply"}', target))
    result = pytester.runpytest_inprocess("--viva", "-k", "opening and m2")
    result.assert_outcomes(errors=1, deselected=3)
    result.stdout.fnmatch_lines(["could not be held: target: *127.0.0.1:9*", "ERROR two.viva.yaml::opening[[]m2[]] *"])
    assert runs(pytester) == {"refunds": ["opening#0"]}


def test_a_gate_that_passes_excuses_the_samples_that_miss(pytester: pytest.Pytester) -> None:
    write(pytester, g__viva__yaml=GATED.replace("VALUE", "0.5"))
    result = pytester.runpytest_inprocess("--viva", "-rx")
    result.assert_outcomes(passed=3, xfailed=1)
    result.stdout.fnmatch_lines(["XFAIL *::b - the gate still passes: said: does not contain 'voucher'"])
    pytester.runpytest_inprocess("--viva", "--runxfail").assert_outcomes(passed=3, failed=1)


def test_an_error_that_the_gate_passes_over_is_not_red(pytester: pytest.Pytester) -> None:
    graders = "def picky(sample, submission):\n    return 1 / 0 if sample.id == 'b' else True\n"
    suite = GATED.replace("VALUE", "0.5").replace(
        "graders: {", "graders: {picky: {kind: function, function: 'g.py:picky'}, "
    )
    write(pytester, g__viva__yaml=suite, g__py=graders)
    result = pytester.runpytest_inprocess("--viva", "-rx")
    result.assert_outcomes(passed=3, xfailed=1)
    result.stdout.fnmatch_lines(["XFAIL *::b - the gate still passes: could not be judged: picky: *"])


RULED = """
name: ruled
target: {kind: function, function: "bot.py:reply"}
dataset: {rows: [{id: a, input: hello, expect: [{contains: EUR}]}]}
graders:
  checked: {kind: rule, each: {call: refnd}, only_after: [{call: look_up}]SEVERITY}
"""


@pytest.mark.parametrize(("severity", "code"), [("", 1), (", severity: warn", 0)])
def test_a_rule_that_never_applies_is_not_green(pytester: pytest.Pytester, severity: str, code: int) -> None:
    write(pytester, bot__py=BOT, r__viva__yaml=RULED.replace("SEVERITY", severity))
    result = pytester.runpytest_inprocess("--viva")
    assert result.ret == code
    result.stdout.fnmatch_lines(["*checked: every conversation must pass; it applied to no conversation*"])


def test_a_run_with_nothing_scored_is_not_green(pytester: pytest.Pytester) -> None:
    rows = re.sub(r", ground_truth: \w+", "", GATED.partition("gate:")[0])
    write(pytester, g__viva__yaml=rows)
    result = pytester.runpytest_inprocess("--viva")
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(["inconclusive: nothing was scored in the whole run; no grader applies: said: *"])


def test_a_gate_that_passes_excuses_no_broken_rule(pytester: pytest.Pytester) -> None:
    suite = GATED.replace("VALUE", "0.5").replace(
        "graders: {", "graders: {never: {kind: rule, never: {assistant_says: EUR}}, "
    )
    write(pytester, g__viva__yaml=suite)
    result = pytester.runpytest_inprocess("--viva")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["the run fails: fail · never: every conversation must pass; 2 of 3 did not: b, c; *"])


def test_a_miss_that_only_warns_is_not_red(pytester: pytest.Pytester) -> None:
    suite = SUITE + "graders: {polite: {kind: rule, always: {assistant_says: please}, severity: warn}}\n"
    write(pytester, shop__viva__yaml=suite.replace("{numeric: 24.90}", "{numeric: 24.90, severity: warn}"))
    result = pytester.runpytest_inprocess("--viva", "-rx")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["XFAIL *only a warning: polite: *"])


def test_a_gate_that_fails_is_a_test_that_fails(pytester: pytest.Pytester) -> None:
    write(pytester, g__viva__yaml=GATED.replace("VALUE", "0.9"))
    result = pytester.runpytest_inprocess("--viva")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["the run fails: fail · said: mean must be ≥ 0.9; *", "*: viva show gated-*"])


def test_a_gate_says_nothing_about_a_part_of_the_samples(pytester: pytest.Pytester) -> None:
    write(pytester, g__viva__yaml=GATED.replace("VALUE", "0.5"))
    result = pytester.runpytest_inprocess("--viva", "-k", "b or gate", "-rs")
    result.assert_outcomes(failed=1, skipped=1, deselected=2)
    result.stdout.fnmatch_lines(["*the verdict is about all samples; left out: 2*"])
    pytester.runpytest_inprocess("g.viva.yaml::gate").assert_outcomes(passed=1)


def test_a_sample_with_trials_is_one_test(pytester: pytest.Pytester) -> None:
    bot = "calls = []\ndef reply(message):\n    calls.append(1)\n    return 'voucher' if len(calls) == 2 else 'order'\n"
    rows = "[{id: a, input: hi, expect: {contains: order}}]"
    suite = "name: t\ntrials: 3\nmax_concurrent: 1\ntarget: {kind: function, function: 'bot.py:reply'}\n"
    write(pytester, bot__py=bot, t__viva__yaml=f"{suite}dataset: {{rows: {rows}}}\n")
    result = pytester.runpytest_inprocess("--viva")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["2 of 3 trials passed; needed 3", "trial ?: expect: *", "*viva show t-?????? 'a#?'"])


def test_what_could_not_be_held_or_judged_is_an_error(pytester: pytest.Pytester) -> None:
    write(pytester, bot__py="def reply(message):\n    raise ValueError('no network')\n", shop__viva__yaml=SUITE)
    result = pytester.runpytest_inprocess("--viva", "--junitxml=j.xml")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["could not be held: target: *no network*"])
    tree = ElementTree.parse(pytester.path / "j.xml")
    assert [error.get("message", "")[:16] for error in tree.iter("error")] == ["failed on setup "] * 2


def test_a_suite_that_is_wrong_is_an_error_with_its_place(pytester: pytest.Pytester) -> None:
    write(pytester, shop__viva__yaml=SUITE.replace("target:", "targt:"))
    result = pytester.runpytest_inprocess("--viva")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*shop.viva.yaml:3:1 targt: unknown key*did you mean 'target'*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_suite_without_samples_is_an_error(pytester: pytest.Pytester) -> None:
    write(pytester, shop__viva__yaml=f"{SUITE.partition('dataset:')[0]}dataset: rows.jsonl\n", rows__jsonl="")
    pytester.makepyfile("def test_else(): pass")
    result = pytester.runpytest_inprocess("--viva")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*shop.viva.yaml: the dataset has no samples"])


def test_a_suite_that_cannot_be_run_says_so_once(pytester: pytest.Pytester) -> None:
    write(pytester, shop__viva__yaml=f"{SUITE}graders: {{x: {{kind: function, function: containz}}}}\n")
    result = pytester.runpytest_inprocess("--viva")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["the suite could not be run: *containz*did you mean 'contains'*"])
    result.stdout.no_fnmatch_line("*another exception occurred*")
    result.stdout.fnmatch_lines(["the suite could not be run: see refund"])


def test_a_sample_that_no_grader_applies_to_is_skipped(pytester: pytest.Pytester) -> None:
    suite = GATED.replace("gate:", "#").replace(", ground_truth: voucher", "")
    write(pytester, g__viva__yaml=suite)
    result = pytester.runpytest_inprocess("--viva", "-rs")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["*no grader applies: said: *"])


def test_reports_and_properties(pytester: pytest.Pytester) -> None:
    write(pytester, shop__viva__yaml=SUITE)
    result = pytester.runpytest_inprocess("--viva", "--viva-report=out/r.xml", "--junitxml=j.xml")
    result.stdout.fnmatch_lines(["wrote out*r.xml: run refunds-*"])
    assert "<testsuite" in (pytester.path / "out" / "r.xml").read_text()
    case = next(ElementTree.parse(pytester.path / "j.xml").iter("testcase"))
    known = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert known == {
        "viva_run": known["viva_run"],
        "viva_sample": "refund",
        "viva_target": "bot.reply",
        "viva_score_expect": "0.5",
    }
    write(pytester, g__viva__yaml=GATED.replace("VALUE", "0.5"))
    pytester.runpytest_inprocess("--viva", "--viva-report=r.md")
    assert sorted(path.name for path in pytester.path.glob("*.md")) == ["r-gated.md", "r-refunds.md"]


@pytest.mark.parametrize("workers", [(), ("-p", "xdist.plugin", "-n", "2")], ids=["one process", "two workers"])
def test_a_run_that_a_test_made_is_in_the_reports_from_whatever_store(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    test = """
from vivavoce import run_suite
def test_here():
    viva_assert(run_suite("shop.yaml", store="kept.db"))
def test_elsewhere():
    viva_assert(run_suite("other.yaml", store="elsewhere.db"))
"""
    suites = {"shop__yaml": SUITE, "other__yaml": SUITE.replace("refunds", "others")}
    write(pytester, test_it__py=SPEAK + test, **suites)
    pytester.makeini("[pytest]\nviva_store = kept.db\n")
    result = pytester.runpytest_subprocess(*workers, "--viva-report=r.json")
    result.assert_outcomes(failed=2)
    texts = ["refunds · 2 conversations · *viva show --store *kept.db refunds-??????"]
    texts += ["others · 2 conversations · *viva show --store *elsewhere.db others-??????"]
    for line in [*texts, "wrote r-refunds.json: *", "wrote r-others.json: *"]:
        result.stdout.fnmatch_lines([line])
    assert json.loads((pytester.path / "r-others.json").read_text())["run"]["suite"] == "others"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--viva-report=r.htm"], "*--viva-report=r.htm: the suffix names no format; did you mean '.html'?*"),
        (["--viva-record"], "*--viva-record needs a cassette: add --viva-cassette FILE*"),
    ],
)
def test_options_that_cannot_be_used_are_said_at_once(pytester: pytest.Pytester, options: list[str], text: str) -> None:
    result = pytester.runpytest_inprocess(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([text])


def test_a_report_that_cannot_be_written_fails_the_call(pytester: pytest.Pytester) -> None:
    write(pytester, g__viva__yaml=GATED.replace("VALUE", "0.5"), taken="a file")
    result = pytester.runpytest_inprocess("--viva", "--viva-report=taken/r.html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["ERROR UsageError: *taken*cannot be written*"])


def test_a_store_of_its_own_stands_in_the_commands(pytester: pytest.Pytester) -> None:
    write(pytester, shop__viva__yaml=SUITE)
    pytester.makeini("[pytest]\nviva_store = kept/tests.db\n")
    result = pytester.runpytest_inprocess("--viva")
    result.stdout.fnmatch_lines(["the whole conversation: viva show --store *tests.db refunds-?????? refund"])
    assert (pytester.path / "kept" / "tests.db").exists()


def test_two_workers_write_one_run(pytester: pytest.Pytester) -> None:
    tests = "\n".join(
        f"def test_{i}(): viva_assert(spoken('q', 'a {i}'), expect=[{{'contains': 'a'}}])" for i in range(12)
    )
    rows = ", ".join(f"{{id: s{i}, input: hi, expect: {{contains: EUR}}}}" for i in range(8))
    suite = f"name: eight\ntarget: {{kind: function, function: 'bot.py:reply'}}\ndataset: {{rows: [{rows}]}}\n"
    write(pytester, test_many__py=SPEAK + tests, eight__viva__yaml=suite)
    result = pytester.runpytest_subprocess("-p", "xdist.plugin", "-n", "2", "--viva", "--viva-report=r.json")
    result.assert_outcomes(passed=20)
    result.stdout.fnmatch_lines(["eight · 8 conversations*"])
    result.stdout.fnmatch_lines(["pytest · 12 conversations*"])
    assert {name: len(run) for name, run in runs(pytester).items()} == {"pytest": 12, "eight": 8}
    report = json.loads((pytester.path / "r-pytest.json").read_text())
    assert report["run"]["status"] == "finished"


INTERRUPTING = """
import os, signal
from pathlib import Path
def reply(message):
    if message == "s3" and not Path("interrupted").exists():
        Path("interrupted").touch()
        os.kill(int(os.environ["INTERRUPTED"]) or os.getpid(), signal.SIGINT)
        import time; time.sleep(30)
    return "EUR"
"""
CONTROLLER = """
import os, signal
def pytest_configure(config):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script that starts tests with & ignores it for them
    if not hasattr(config, "workerinput"):
        os.environ["INTERRUPTED"] = str(os.getpid() if config.getoption("numprocesses", None) else 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C ends the program there")
@pytest.mark.parametrize("workers", [(), ("-p", "xdist.plugin", "-n", "2")], ids=["one process", "two workers"])
def test_an_interruption_names_the_run_and_what_continues_it(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    rows = ", ".join(f"{{id: s{i}, input: s{i}, expect: {{contains: EUR}}}}" for i in range(6))
    target = "max_concurrent: 1\ntarget: {kind: function, function: 'bot.py:reply'}"
    suite = f"name: six\n{target}\ndataset: {{rows: [{rows}]}}\n"
    write(pytester, bot__py=INTERRUPTING, six__viva__yaml=suite, conftest__py=CONTROLLER)
    result = pytester.runpytest_subprocess(*workers, "--viva", "--viva-report=r.json", timeout=60)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["six · ? conversations · * · continue with: viva run --resume six-??????"])
    if not workers:
        result.stdout.fnmatch_lines(["six · 3 conversations · *interrupted after 3 of 6 conversations*"])
        assert json.loads((pytester.path / "r.json").read_text())["run"]["status"] == "interrupted"
    with Store.open(str(pytester.path / ".vivavoce" / "vivavoce.db"), create=False) as store:
        [run] = store.runs()
        result.stdout.fnmatch_lines([f"*viva run --resume {run.id}"])


def test_an_interrupted_assertion_keeps_the_conversations_before_it(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.viva(trials=2)
def test_it():
    viva_assert(spoken('q', 'a'), expect=[{'contains': 'a'}])
    raise KeyboardInterrupt
"""
    write(pytester, test_it__py=SPEAK + test)
    result = pytester.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["pytest · 1 conversation · expect 1.000* · viva show pytest-??????"])


@pytest.mark.skipif(sys.platform == "win32", reason="a claim needs locks")
def test_a_worker_that_dies_loses_nothing(pytester: pytest.Pytester) -> None:
    bot = """
import os
from pathlib import Path
def reply(message):
    with open("asked.txt", "a") as file:
        file.write(message + " ")
    if message == "s3" and not Path("died").exists():
        Path("died").touch()
        os._exit(1)
    return "EUR"
"""
    rows = ", ".join(f"{{id: s{i}, input: s{i}, expect: {{contains: EUR}}}}" for i in range(6))
    target = "max_concurrent: 1\ntarget: {kind: function, function: 'bot.py:reply'}"
    suite = f"name: six\n{target}\ndataset: {{rows: [{rows}]}}\n"
    write(pytester, bot__py=bot, six__viva__yaml=suite)
    result = pytester.runpytest_subprocess("-p", "xdist.plugin", "-n", "2", "--viva")
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*crashed while running*six.viva.yaml*"])
    assert {name: len(run) for name, run in runs(pytester).items()} == {"six": 6}


def test_what_was_said_cannot_command_a_ci_server(pytester: pytest.Pytester) -> None:
    write(pytester, bot__py="def reply(message):\n    return '\\n::error::x\\x1b[2J'\n", shop__viva__yaml=SUITE)
    result = pytester.runpytest_inprocess("--viva")
    assert not any(line.lstrip().startswith("::error") or "\x1b[2J" in line for line in result.outlines)


def test_an_installed_package_offers_the_plugin() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    (name,) = project["project"]["entry-points"]["pytest11"].values()
    assert callable(import_module(name).pytest_addoption)
