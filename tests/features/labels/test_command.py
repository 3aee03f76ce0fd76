from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from command_line import Viva
from server.pages.cases import keep, outcome
from vivavoce.records.label import Decision, Label
from vivavoce.records.score import Score
from vivavoce.store.store import Store


@pytest.fixture
def store_with_labels(tmp_path: Path) -> None:
    """A store with two labels; the judge agrees with one of them."""
    with Store.open(str(tmp_path / "x.db")) as store:
        keep(store, [outcome(name, grades={"goal": Score(value=1.0)}) for name in ("one", "two")], "run-1")
        for name, verdict in (("one", "pass"), ("two", "fail")):
            key_fields = {"sample_id": name, "target": "bot", "trial": 0, "grader": "goal", "author": "Ida"}
            label_fields = {"verdict": verdict, "note": f"=why {name}", "created_at": 1.0}
            store.labels.set("run-1", Label.model_validate({**key_fields, **label_fields}))


@pytest.mark.usefixtures("store_with_labels")
def test_labels_are_written_a_line_each(viva: Viva) -> None:
    lines = viva("labels", "export", "latest", "--store", "x.db").stdout.splitlines()
    assert [(json.loads(line)["sample_id"], json.loads(line)["note"]) for line in lines] == [
        ("one", "=why one"),
        ("two", "=why two"),
    ]


@pytest.mark.usefixtures("store_with_labels")
def test_a_note_is_no_formula_in_a_spreadsheet(viva: Viva) -> None:
    done = viva("labels", "export", "--format", "csv", "--store", "x.db")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["sample_id"], row["verdict"], row["note"]) for row in rows] == [
        ("one", "pass", "'=why one"),
        ("two", "fail", "'=why two"),
    ]


@pytest.mark.usefixtures("store_with_labels")
def test_the_agreement_is_told_with_where_the_two_differ(viva: Viva) -> None:
    output = viva("labels", "agreement", "--grader", "goal", "--store", "x.db").stdout
    assert "2 compared: 1 both pass, 0 both fail, 1 judge too lenient, 0 judge too strict" in output
    assert "too lenient  two  =why two" in output
    assert json.loads(viva("labels", "agreement", "--grader", "goal", "--json", "--store", "x.db").stdout)["n"] == 2
    refused = viva("labels", "agreement", "--store", "x.db")
    assert (refused.returncode, "--grader NAME" in refused.stderr) == (2, True)
    misnamed = viva("labels", "agreement", "--grader", "gaol", "--store", "x.db")
    assert misnamed.returncode == 2
    assert misnamed.stderr == "no grader 'gaol' in run run-1; did you mean 'goal'?\n"


@pytest.mark.usefixtures("store_with_labels")
def test_it_is_said_where_there_are_no_labels(viva: Viva) -> None:
    done = viva("labels", "--author", "nobody", "--store", "x.db")
    assert (done.returncode, done.stdout, "no labels for run-1" in done.stderr) == (0, "", True)


@pytest.fixture
def rated_run(viva: Viva, tmp_path: Path) -> None:
    """A run over conversations that have labels of their own."""
    replies = ["I cannot help with that.", "Here you are.", "I am unable to do that.", "Of course: nine o'clock."] * 4
    rows = [
        {
            "id": f"r{place}",
            "messages": [{"role": "user", "content": "Help?"}, {"role": "assistant", "content": text}],
            "labels": {"answered": place % 2 == 1 or place == 8, "stars": [1 + place % 2, 2 + place % 2]},
            "tags": ["report" if place < 8 else "choose"],
        }
        for place, text in enumerate(replies)
    ]
    (tmp_path / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    viva("judge", "talks.jsonl", "--metrics", "refusal,repetition", "--quiet", "--store", "x.db")


@pytest.mark.usefixtures("rated_run")
def test_graders_are_compared_with_a_label_of_the_dataset(viva: Viva) -> None:
    done = viva("labels", "agreement", "--label", "answered", "--store", "x.db")
    assert (done.returncode, done.stderr) == (0, "")
    assert "**`refusal` compared with `labels.answered`**: 16 conversations compared" in done.stdout
    assert "| accuracy | 16 | 0.938 | 0.717 … 0.989 | – | – |" in done.stdout
    assert "`repetition`" in done.stdout
    half = viva(
        "labels", "agreement", "--label", "answered", "--tag", "report", "--grader", "refusal", "--store", "x.db"
    )
    assert "| accuracy | 8 | 1.000 | 0.676 … 1.000 | – | – |" in half.stdout
    assert "repetition" not in half.stdout
    stars = ["--label", "stars", "--good-from", "2", "--grader", "refusal", "--json"]
    as_json = json.loads(viva("labels", "agreement", *stars, "--store", "x.db").stdout)
    assert [figure["name"] for figure in as_json["figures"]] == ["accuracy", "κ", "AUROC", "Spearman"]
    assert (as_json["grader"], as_json["errors"], as_json["figures"][0]["value"]) == ("refusal", {}, 1.0)


@pytest.mark.usefixtures("rated_run")
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["agreement", "--tag", "report"], "--label"),
        (["agreement", "--good-from", "3"], "--label"),
        (["export", "--label", "answered"], "--label is for viva labels agreement"),
        (["agreement", "--label", "answered", "--author", "Ida"], "without --author and --turns"),
        (["agreement", "--label", "absent"], "no row has labels.absent"),
        (["agreement", "--label", "answered", "--tag", "absent"], "no row has the tag 'absent'"),
        (["agreement", "--label", "answered", "--grader", "refusals"], "did you mean 'refusal'?"),
    ],
)
def test_options_that_do_not_fit_are_refused(viva: Viva, options: list[str], why: str) -> None:
    refused = viva("labels", options[0], "latest", *options[1:], "--store", "x.db")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert why in " ".join(refused.stderr.split())


@pytest.mark.usefixtures("store_with_labels")
def test_the_agreement_between_people_is_told(viva: Viva, tmp_path: Path) -> None:
    assert "people" not in viva("labels", "agreement", "--grader", "goal", "--store", "x.db").stdout
    with Store.open(str(tmp_path / "x.db")) as store:
        for name in ("one", "two"):
            key_fields = {"sample_id": name, "target": "bot", "trial": 0, "grader": "goal", "author": "Bo"}
            store.labels.set("run-1", Label.model_validate({**key_fields, "verdict": "pass", "created_at": 1.0}))
    output = viva("labels", "agreement", "--grader", "goal", "--store", "x.db").stdout
    assert "2 people: 1 of 2 with the same label\nKrippendorff's α 0.000" in output
    assert "Cohen's κ 0.000" in output
    assert "people differ  two  Bo says pass, Ida says fail" in output
    people = json.loads(viva("labels", "agreement", "--grader", "goal", "--json", "--store", "x.db").stdout)["people"]
    assert (people["people"], people["n"], people["same"]) == (["Bo", "Ida"], 2, 1)


@pytest.mark.usefixtures("store_with_labels")
def test_where_people_differ_is_listed_with_what_was_decided(viva: Viva, tmp_path: Path) -> None:
    assert "no conversation or turn has both a pass and a fail" in viva("labels", "differing", "--store", "x.db").stderr
    key_fields = {"sample_id": "two", "target": "bot", "trial": 0, "grader": "goal", "created_at": 2.0}
    with Store.open(str(tmp_path / "x.db")) as store:
        store.labels.set("run-1", Label.model_validate({**key_fields, "author": "Olu", "verdict": "pass"}))
    output = viva("labels", "differing", "--store", "x.db").stdout
    assert output == "two  goal  Ida says fail, Olu says pass  not decided\n"
    with Store.open(str(tmp_path / "x.db")) as store:
        store.decisions.set("run-1", Decision.model_validate({**key_fields, "author": "Ada", "verdict": "pass"}))
    assert "Ada decided pass" in viva("labels", "differing", "--store", "x.db").stdout
    after = viva("labels", "agreement", "--grader", "goal", "--store", "x.db").stdout
    assert "2 compared: 2 both pass" in after
    assert "1 of them settled a disagreement" in after
    data = json.loads(viva("labels", "differing", "--json", "--store", "x.db").stdout)
    assert (data["decision"]["author"], len(data["labels"])) == ("Ada", 2)


@pytest.mark.usefixtures("store_with_labels")
def test_the_agreement_of_people_is_written_as_markdown(viva: Viva, tmp_path: Path) -> None:
    key_fields = {"sample_id": "two", "target": "bot", "trial": 0, "grader": "goal", "created_at": 2.0}
    with Store.open(str(tmp_path / "x.db")) as store:
        store.labels.set("run-1", Label.model_validate({**key_fields, "author": "Olu", "verdict": "pass"}))
    output = viva("labels", "agreement", "--grader", "goal", "--markdown", "--store", "x.db").stdout
    assert "**2 people**: `Ida`, `Olu`" in output
    assert "| `two` | fail | pass |" in output
    refused = viva("labels", "export", "--markdown", "--store", "x.db")
    assert (refused.returncode, "--markdown is for viva labels agreement" in refused.stderr) == (2, True)
