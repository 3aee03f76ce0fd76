from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provider_model import ProviderModel
from vivavoce.errors import ModelFault, UsageError
from vivavoce.features.batches.files import RequestFile, import_responses
from vivavoce.messages import HumanMessage
from vivavoce.metrics.judged.aspect_critic import AspectCritic
from vivavoce.metrics.judged.goal import GoalAchievementJudge
from vivavoce.metrics.result import MetricResult
from vivavoce.models.cache import CachedModel, OfflineModel, reply_key
from vivavoce.models.model import Model, Request, Subject
from vivavoce.models.names import open_model
from vivavoce.models.openai import OpenAIModel
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer, ScriptedModel

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"score": {"type": "number", "maximum": 1}},
    "required": ["score"],
    "additionalProperties": False,
}
ASKED = Request([HumanMessage(content="How good 🎓\ud800 is it?")], schema=SCHEMA, settings={"temperature": 0.0})
NAME = "openai:gpt-4.1-mini"
JUDGE = OpenAIModel("gpt-4.1-mini", api_key="unused")
FILE = Path("f.jsonl")

TOLD = "In five days."
SHORT = [{"role": "user", "content": "And the refund?"}, {"role": "assistant", "content": TOLD}]
LONG = [{"role": "user", "content": "Cancel it, please."}, {"role": "assistant", "content": "Done."}, *SHORT]
OTHER = [*SHORT, {"role": "user", "content": "Thanks!"}, {"role": "assistant", "content": "You are welcome."}]
CONVERSATIONS = [SHORT, LONG, OTHER]


@pytest.fixture
async def replies(tmp_path: Path) -> AsyncIterator[ReplyStore]:
    with Store.open(str(tmp_path / "x.db")) as store:
        async with store.replies() as replies:
            yield replies


async def asked(model: Model, *requests: Request) -> list[str]:
    """Ask a model that gives no answers, and return the kinds of its failures."""
    kinds: list[str] = []
    for request in requests:
        with pytest.raises(ModelFault) as caught:
            await model.complete(request)
        kinds.append(caught.value.kind)
    return kinds


async def exported(*requests: Request) -> None:
    file = RequestFile(FILE, JUDGE)
    await asked(file, *requests)
    await file.close()


def lines(path: Path = FILE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def key_of(line: dict[str, Any]) -> str:
    key, _, mark = line["custom_id"].partition("-")
    assert len(mark) == 8
    return key


def completion(text: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    return {"choices": [choice], "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000}}


def answering(body: dict[str, Any], status: int = 200) -> dict[str, Any]:
    return {"response": {"status_code": status, "request_id": "r", "body": body}, "error": None}


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
    """Do as the service does: answer each line of the file, in another order, and take the file away."""
    answers = [{"id": "b", "custom_id": line["custom_id"], **answer(line["body"])} for line in reversed(lines())]
    FILE.unlink()
    return written(answers)


def written(answers: Sequence[object]) -> Path:
    path = Path("responses.jsonl")
    path.write_text("".join(json.dumps(one) + "\n" for one in answers))
    return path


def says(**parsed: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda body: answering(completion(json.dumps(parsed)))


async def test_a_line_holds_exactly_what_would_be_sent_and_the_key_of_its_answer() -> None:
    async with LoopbackServer(lambda body: {"score": 1}) as server:
        model = OpenAIModel("m", base_url=server.base_url, settings={"max_tokens": 9})
        file = RequestFile(FILE, model)
        assert await asked(file, ASKED) == ["exported"]
        await file.close()
        await model.complete(ASKED)
        await model.close()
    assert lines() == [
        {
            "custom_id": lines()[0]["custom_id"],
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": server.requests[0].body,
        }
    ]
    assert key_of(lines()[0]) == reply_key(model.name, {"max_tokens": 9}, ASKED)
    assert lines()[0]["body"]["response_format"]["type"] == "json_schema"


async def test_a_line_says_what_it_is_about_and_that_changes_neither_the_request_nor_its_key() -> None:
    await exported(ASKED)
    (bare,) = lines()
    FILE.unlink()
    file = RequestFile(FILE, JUDGE)
    file.ask_for("refund#2", "all_of")
    about = Subject("safety", first_turn=2, last_turn=3)
    await asked(file, replace(ASKED, subject=about), replace(ASKED, subject=about, trial=1), replace(ASKED, trial=2))
    await file.close()
    first, second, unknown = lines()
    piece = {"first_turn": 2, "last_turn": 3}
    assert first == {**bare, "sample": "refund#2", "metric": "safety", "piece": piece}
    assert (second["sample"], second["piece"]) == ("refund#2", piece)
    assert (unknown["sample"], unknown["metric"], "piece" in unknown) == ("refund#2", "all_of", False)


async def test_an_answer_may_repeat_what_its_question_was_about(replies: ReplyStore) -> None:
    await exported(ASKED)
    (answer,) = (json.loads(line) for line in serve(says(score=1)).read_text().splitlines())
    told = {"sample": "x", "metric": "y", "piece": {"first_turn": 0, "last_turn": 0}}
    assert import_responses(written([{**answer, **told}]), replies, NAME).added == 1


async def test_the_same_question_is_written_once_and_the_file_is_there_when_it_is_closed() -> None:
    file = RequestFile(FILE, JUDGE)
    with pytest.raises(ModelFault, match=r"asked in f\.jsonl; import the responses"):
        await file.complete(ASKED)
    await asked(file, ASKED, replace(ASKED, trial=1))
    assert not FILE.exists()
    await file.close()
    await file.close()
    assert len({line["custom_id"] for line in lines()}) == len(lines()) == file.asked == 2
    assert file.files == list(Path().iterdir()) == [FILE]


async def test_where_nothing_is_asked_there_is_no_file() -> None:
    file = RequestFile(FILE, JUDGE)
    await file.close()
    assert (file.asked, file.files, list(Path().iterdir())) == (0, [], [])


async def test_what_is_asked_after_the_end_is_not_lost() -> None:
    file = RequestFile(FILE, JUDGE)
    for trial in range(2):
        await asked(file, ASKED, replace(ASKED, trial=trial))
        await file.close()
    assert file.files == [FILE, Path("f-2.jsonl")]
    assert file.asked == sum(len(lines(path)) for path in file.files) == 2


@given(sizes=st.lists(st.integers(0, 900), max_size=12), requests=st.integers(1, 5), most=st.integers(600, 3000))
def test_no_file_holds_more_than_the_service_takes(sizes: list[int], requests: int, most: int) -> None:
    with TemporaryDirectory() as folder:
        file = RequestFile(Path(folder, "f.jsonl"), JUDGE, most_requests=requests, most_bytes=most)
        questions = [
            replace(ASKED, messages=[HumanMessage(content=f"{n}{'x' * size}")]) for n, size in enumerate(sizes)
        ]
        asyncio.run(asked(file, *questions))
        asyncio.run(file.close())
        found = [lines(path) for path in file.files]
        keys = [key_of(line) for part in found for line in part]
        assert keys == [reply_key(NAME, {}, question) for question in questions]
        for path, part in zip(file.files, found, strict=True):
            assert 0 < len(part) <= requests
            assert path.stat().st_size <= most or len(part) == 1


async def test_a_file_that_is_there_stays_as_it_is() -> None:
    FILE.write_text("mine")
    with pytest.raises(UsageError, match=r"f\.jsonl: already exists"):
        RequestFile(FILE, JUDGE)
    FILE.unlink()
    file = RequestFile(FILE, JUDGE, most_requests=1)
    await asked(file, ASKED, replace(ASKED, trial=1))
    Path("f-2.jsonl").write_text("mine")
    with pytest.raises(UsageError, match=r"f-2\.jsonl: already exists"):
        await file.close()
    assert (file.files, list(Path().iterdir()), Path("f-2.jsonl").read_text()) == ([], [Path("f-2.jsonl")], "mine")


async def test_a_place_that_cannot_be_written_is_named() -> None:
    with pytest.raises(UsageError, match=r"no/f\.jsonl: cannot be written: there is no such folder"):
        RequestFile("no/f.jsonl", JUDGE)
    Path("gone").mkdir()
    file = RequestFile("gone/f.jsonl", JUDGE)
    Path("gone").rmdir()
    for failing in (file.complete(ASKED), file.close()):
        with pytest.raises(UsageError, match=r"gone/f\.jsonl: cannot be written: No such file"):
            await failing


async def test_only_models_and_questions_that_a_batch_takes_are_exported() -> None:
    with pytest.raises(UsageError, match="scripted cannot be used with a request file"):
        RequestFile(FILE, ScriptedModel([]))
    tool: dict[str, Any] = {"type": "function", "function": {"name": "look"}}
    file = RequestFile(FILE, JUDGE)
    assert await asked(file, replace(ASKED, schema=None), replace(ASKED, tools=[tool])) == ["unsupported"] * 2
    other = RequestFile(FILE, OpenAIModel("m", structured="prompted"))
    assert await asked(other, ASKED) == ["unsupported"]


async def judged(model: Model, conversation: list[dict[str, str]]) -> MetricResult:
    judge = GoalAchievementJudge(model, tokens=15, overlap=0)
    return await judge.aevaluate(conversation, goal="Learn when the refund comes.")


def verdict(body: dict[str, Any]) -> dict[str, Any]:
    """Answer as a judge who finds what is told in the piece that it is shown."""
    text = body["messages"][-1]["content"]
    met = TOLD in text.rpartition("\n\nTask:")[0]
    evidence = [TOLD] if met else []
    told: dict[str, Any] = {"breaches": [], "reasoning": "So it is.", "confidence": 0.9}
    if "Rules:" in text:
        told["rules"] = [{"rule": 1, "evidence": evidence, "happened": "yes" if met else "no"}]
    else:
        told["criteria"] = [{"outcome": "refund told", "kind": "fact", "evidence": evidence, "met": met}]
    return answering(completion(json.dumps(told)))


async def test_verdicts_are_bought_in_rounds_and_each_asks_only_what_is_missing(replies: ReplyStore) -> None:
    rounds: list[int] = []
    while True:
        file = RequestFile(FILE, JUDGE)
        results = [await judged(CachedModel(file, replies), one) for one in CONVERSATIONS]
        await file.close()
        if not file.asked:
            break
        rounds.append(file.asked)
        assert {result.error.kind for result in results if result.error} == {"exported"}
        report = import_responses(serve(verdict), replies, NAME)
        assert (report.answered, report.added, report.failed) == (file.asked, file.asked, ())
    assert rounds == [3, 2], "two of the conversations are judged in two pieces"
    assert [len(result.details.get("pieces", ())) for result in results] == [0, 2, 2]
    assert [result.score for result in results] == ["fully_achieved"] * 3
    assert [result.usage and result.usage.cost for result in results] == [0.0] * 3
    again = await judged(CachedModel(OfflineModel(NAME), replies, offline=True), LONG)
    assert (again.score, again.fingerprint) == (results[1].score, results[1].fingerprint)


async def test_all_votes_of_one_verdict_are_asked_in_one_round(replies: ReplyStore) -> None:
    file = RequestFile(FILE, JUDGE)
    critic = AspectCritic(CachedModel(file, replies), definition="Is it polite?", strictness=3)
    assert (await critic.aevaluate(SHORT)).state == "error"
    await file.close()
    assert file.asked == 3


FAILED: dict[str, tuple[dict[str, Any], str]] = {
    "refused": (answering(completion(None, refusal="I will not.")), "the model declined to answer: I will not."),
    "filtered": (answering(completion("{", "content_filter")), "the model declined to answer: {"),
    "cut off": (answering(completion('{"sc', "length")), 'the answer was cut off at the token limit: {"sc'),
    "prose": (answering(completion("Quite good.")), "not JSON: Expecting value: line 1 column 1 (char 0): Quite good."),
    "a list": (answering(completion("[1]")), "a JSON object is needed, got a list: [1]"),
    "not a number": (
        answering(completion('{"score": NaN}')),
        'not JSON: NaN is not a JSON number; write null where there is no value: {"score": NaN}',
    ),
    "no choice": (answering({"choices": []}), 'the batch: the answer has no choices[0].message: {"choices": []}'),
    "status": (answering({"error": {"code": "x", "message": "too\nlong"}}, 400), "status 400: x: too long"),
    "no words": (answering({}, 500), "status 500: {}"),
    "expired": (
        {"response": None, "error": {"code": "batch_expired", "message": "It took a day."}},
        "batch_expired: It took a day.",
    ),
    "bare words": ({"response": None, "error": "x" * 999}, f"{'x' * 300}… (699 more characters)"),
}


@pytest.mark.parametrize("name", FAILED)
async def test_what_is_no_answer_is_counted_with_its_cause_and_asked_again(replies: ReplyStore, name: str) -> None:
    failure, cause = FAILED[name]
    await exported(ASKED)
    report = import_responses(serve(lambda body: failure), replies, NAME)
    assert [(key_of({"custom_id": one.custom_id}), one.cause) for one in report.failed] == [
        (reply_key(NAME, {}, ASKED), cause)
    ]
    assert (report.answered, report.added, list(replies.all())) == (0, 0, [])
    file = RequestFile(FILE, JUDGE)
    assert await asked(CachedModel(file, replies), ASKED) == ["exported"]
    await file.close()
    assert file.asked == 1


async def test_a_sloppy_answer_is_kept_as_it_came_and_read_with_its_schema_when_it_is_used(replies: ReplyStore) -> None:
    await exported(ASKED)
    text = 'Sure!\n```json\n{"Score": "0.5"}\n```'
    assert import_responses(serve(lambda body: answering(completion(text))), replies, NAME).answered == 1
    reply = await CachedModel(OfflineModel(NAME), replies, offline=True).complete(ASKED)
    assert (reply.text, reply.parsed) == (text, {"score": 0.5})
    assert reply.applied == {"mode": "batch", "read": "fenced, prose, keys, types", "cached": True}


async def test_an_answer_outside_the_schema_is_an_error_and_no_score(replies: ReplyStore) -> None:
    await exported(ASKED)
    assert import_responses(serve(says(score=57)), replies, NAME).answered == 1
    with pytest.raises(ModelFault, match=r"is outside the JSON schema: \$\.score: 57 is greater than") as caught:
        await CachedModel(OfflineModel(NAME), replies, offline=True).complete(ASKED)
    assert (caught.value.kind, caught.value.evidence, replies.rejected) == ("format", '{"score": 57}', 1)


async def test_an_answer_outside_the_schema_is_exported_again_and_a_corrected_one_is_taken(replies: ReplyStore) -> None:
    offline = CachedModel(OfflineModel(NAME), replies, offline=True)
    await exported(ASKED)
    import_responses(serve(says(score=57)), replies, NAME)
    for corrected in ({"score": 58}, {"score": 0.5}):
        file = RequestFile(FILE, JUDGE)
        assert await asked(CachedModel(file, replies), ASKED) == ["exported"]
        await file.close()
        report = import_responses(serve(says(**corrected)), replies, NAME)
        assert (report.answered, report.added, report.replaced) == (1, 0, 1)
    assert (await offline.complete(ASKED)).parsed == {"score": 0.5}


async def test_a_model_that_can_be_asked_replaces_an_answer_outside_the_schema(replies: ReplyStore) -> None:
    await exported(ASKED)
    import_responses(serve(says(score=57)), replies, NAME)
    asking = CachedModel(ProviderModel([{"score": 0.5}], NAME), replies)
    assert [(await asking.complete(ASKED)).parsed for _ in range(2)] == [{"score": 0.5}] * 2
    assert [json.loads(kept.reply)["parsed"] for kept in replies.all()] == [{"score": 0.5}]
    assert replies.rejected == 0


async def test_an_answer_that_a_model_gave_here_stays(replies: ReplyStore) -> None:
    await CachedModel(ProviderModel([{"score": 0.5}], NAME), replies).complete(ASKED)
    await exported(ASKED)
    report = import_responses(serve(says(score=1)), replies, NAME)
    assert (report.added, report.replaced) == (0, 0)
    assert [json.loads(kept.reply)["parsed"] for kept in replies.all()] == [{"score": 0.5}]


async def test_two_lines_that_contradict_each_other_are_both_named_and_nothing_is_kept(replies: ReplyStore) -> None:
    await exported(ASKED, replace(ASKED, trial=1))
    one, two = (json.loads(line) for line in serve(says(score=0.5)).read_text().splitlines())
    path = written([one, two, {**one, **says(score=1)({})}])
    with pytest.raises(UsageError, match=r"responses\.jsonl:3 contradicts line 1, which answers the same question"):
        import_responses(path, replies, NAME)
    assert list(replies.all()) == []
    failed = {"custom_id": two["custom_id"], **FAILED["expired"][0]}
    report = import_responses(written([failed, one, one, two]), replies, NAME)
    assert (report.answered, report.added, report.failed, report.usage.calls) == (2, 2, (), 2)


async def test_an_answer_of_another_model_is_refused(replies: ReplyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await exported(ASKED)
    path = serve(says(score=1))
    with pytest.raises(UsageError, match=r"jsonl:1 answers a question to a model other than openai:gpt-4o; name the"):
        import_responses(path, replies, "openai:gpt-4o")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere/v1")
    with pytest.raises(UsageError, match=r"a model other than https://elsewhere/v1#gpt-4\.1-mini"):
        import_responses(path, replies, NAME)
    monkeypatch.delenv("OPENAI_BASE_URL")
    (line,) = (json.loads(line) for line in path.read_text().splitlines())
    line["response"]["body"]["model"] = "gpt-4.1-nano-2025-04-14"
    with pytest.raises(
        UsageError, match=r"was answered by model 'gpt-4\.1-nano-2025-04-14', but the request was for openai:gpt"
    ):
        import_responses(written([line]), replies, NAME)
    assert list(replies.all()) == []
    line["response"]["body"]["model"] = "gpt-4.1-mini-2025-04-14"
    assert import_responses(written([line]), replies, NAME).added == 1


async def test_an_export_of_an_earlier_version_names_no_model(replies: ReplyStore) -> None:
    await exported(ASKED)
    (line,) = (json.loads(line) for line in serve(says(score=1)).read_text().splitlines())
    line["custom_id"] = key_of(line)
    assert import_responses(written([line]), replies, NAME).added == 1


async def test_a_verdict_of_another_shape_is_an_error_of_the_metric(replies: ReplyStore) -> None:
    file = RequestFile(FILE, JUDGE)
    await judged(CachedModel(file, replies), SHORT)
    await file.close()
    import_responses(serve(says(achievement_level="splendid")), replies, NAME)
    result = await judged(CachedModel(OfflineModel(NAME), replies, offline=True), SHORT)
    assert (result.state, result.score, result.passed) == ("error", "error", None)
    assert result.error is not None
    assert (result.error.blame, result.error.kind) == ("judge", "format")


async def test_importing_twice_changes_nothing(replies: ReplyStore) -> None:
    await exported(ASKED, replace(ASKED, trial=1))
    responses = serve(says(score=0.5))
    assert [import_responses(responses, replies, NAME).added for _ in range(2)] == [2, 0]
    reply = await CachedModel(OfflineModel(NAME), replies).complete(ASKED)
    assert (reply.parsed, reply.text, dict(reply.applied)) == (
        {"score": 0.5},
        '{"score": 0.5}',
        {"mode": "batch", "cached": True},
    )


@pytest.mark.parametrize(("name", "cost"), [(NAME, 1.0), ("http://localhost/v1#m", None), ("openai:unheard-of", None)])
async def test_a_batch_costs_half_the_price_where_that_is_known(
    replies: ReplyStore, name: str, cost: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("prices.json").write_text('{"models": {"http://localhost/v1#m": {"input": 1, "output": 1}}}')
    monkeypatch.setenv("VIVAVOCE_PRICES", "prices.json")
    file = RequestFile(FILE, cast("OpenAIModel", open_model(name, api_key="unused")))
    await asked(file, ASKED)
    await file.close()
    usage = import_responses(serve(says(score=1)), replies, name).usage
    assert (usage.calls, usage.input_tokens, usage.cost) == (1, 1_000_000, cost)


async def test_what_a_refusal_cost_is_counted_too(replies: ReplyStore) -> None:
    await exported(ASKED, replace(ASKED, trial=1))
    answers = iter([FAILED["refused"][0], says(score=1)({})])
    report = import_responses(serve(lambda body: next(answers)), replies, NAME)
    assert (report.answered, len(report.failed), report.usage.calls, report.usage.cost) == (1, 1, 2, 2.0)


GOOD = {"custom_id": "a" * 32, **answering(completion("{}"))}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({**GOOD, "custom_id": "request-1"}, "custom_id: expected 32 hexadecimal digits, as vivavoce exports them"),
        (
            {"custom_id": "b" * 32, "method": "POST", "url": "x", "body": {}},
            "is a request; use the file that the service",
        ),
        ({"custom_id": "b" * 32}, "has neither a response with its status_code nor an error"),
        ({"custom_id": "b" * 32, "response": {"body": {}}}, "has neither a response"),
        ([], "a row is an object"),
    ],
)
def test_a_line_that_is_no_response_is_named_and_nothing_is_kept(replies: ReplyStore, line: object, why: str) -> None:
    path = written([GOOD, line])
    with pytest.raises(UsageError) as caught:
        import_responses(path, replies, NAME)
    assert str(caught.value).startswith(f"responses.jsonl:2 {why}")
    assert list(replies.all()) == []


def test_broken_and_missing_files_are_named(replies: ReplyStore) -> None:
    Path("cut.jsonl").write_text(json.dumps(GOOD) + '\n{"custom_id": "aaaa')
    with pytest.raises(UsageError, match=r"cut\.jsonl:2:\d+ not valid JSON"):
        import_responses("cut.jsonl", replies, NAME)
    with pytest.raises(UsageError, match=r"none\.jsonl: there is no such file"):
        import_responses("none.jsonl", replies, NAME)
    assert list(replies.all()) == []
