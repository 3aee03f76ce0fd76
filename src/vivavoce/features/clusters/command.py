"""`viva compare clusters`: what failed in a run, grouped by what the failures have in common."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from vivavoce.cli.output import StoreOption, notes, out, print_json, store_of
from vivavoce.errors import UsageError
from vivavoce.features.clusters.finding import find_clusters
from vivavoce.features.clusters.naming import name_clusters
from vivavoce.features.clusters.records import Cluster, Clusters, Naming
from vivavoce.features.clusters.suite import ClusterSuite, cluster_suite
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import run as run_loop
from vivavoce.records.details import usage_text
from vivavoce.records.score import conversation_name, turn_label
from vivavoce.report.text import count, one_line, record_json
from vivavoce.store.store import Store
from vivavoce.suites.grading_spec import JudgeSpec
from vivavoce.suites.judges import JudgeOpener


def command(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning or end of its id, or 'latest'.")] = "latest",
    *,
    grader: Annotated[str | None, typer.Option(help="Only failures of this grader.")] = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            help="How to compare reasons: 'words', 'local', or a model such as openai:text-embedding-3-small; "
            "default: local if it is installed and there are at most 500 different reasons of 40,000 "
            "characters, otherwise words."
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A model that names the clusters, with one call per 20; it does not change the groups.",
        ),
    ] = None,
    grading: Annotated[str | None, typer.Option(help="The grading to use; default: the newest.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of clusters to print.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print all clusters as JSON.")] = False,
    suite: Annotated[
        str | None, typer.Option("--suite", metavar="CLUSTER", help="Write a suite with this cluster's samples.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="With --suite: the folder to write to; default: this folder."
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Group the failures of a run by what they have in common, largest group first.

    Errors, tool errors and failed expectations are grouped by their text, without numbers, ids and quoted values; other
    failures by their graders' reasons. Each cluster shows its share of the conversations with a 95% interval, and three
    examples.

    With --judge, a model also gives each cluster a name, which is shown above the signature. Answers are cached. With
    --suite, the command writes a suite with only the samples of one cluster, and the target and graders of the run:
    cluster-ID.yaml and cluster-ID.jsonl. Existing files are not overwritten.
    """
    if output is not None and suite is None:
        raise UsageError("--output is for --suite CLUSTER")
    if suite is not None and judge is not None:
        raise UsageError("--judge names printed clusters, and --suite prints none; use one of them")
    folder = output or Path()
    with Store.open(store_of(store), create=False) as opened:
        stored_run = opened.run(run)
        scores = opened.grading(stored_run.id, grading)
        result = find_clusters(opened, scores, grader=grader, embedder=embedder)
        new_suite = None if suite is None else cluster_suite(opened, (stored_run, scores), result, suite, folder)
        report = result.report if judge is None else run_loop(_name_clusters(opened, result.report, judge))
    if new_suite is not None:
        _write(new_suite, folder)
        return
    if as_json:
        print_json(record_json(report))
        return
    out().print(_headline(report), soft_wrap=True)
    if report.naming is not None:
        _tell_naming(report.naming)
    for cluster in report.clusters[:limit]:
        out().print(_lines(cluster), soft_wrap=True)
    if (more := len(report.clusters) - limit) > 0:
        notes().print(f"and {count(more, 'more cluster')}; --limit shows more", soft_wrap=True)


async def _name_clusters(store: Store, clusters: Clusters, judge: str) -> Clusters:
    async with store.replies() as replies:
        model = JudgeOpener(Budget(), replies).open(judge, JudgeSpec())
        try:
            return await name_clusters(clusters, model)
        finally:
            await model.close()


def _tell_naming(naming: Naming) -> None:
    used = "" if naming.usage is None else f" ({usage_text(naming.usage)})"
    out().print(Text(f"names by {naming.model}{used}"), soft_wrap=True)
    for note in naming.notes:
        notes().print(Text(f"note: {note}"), soft_wrap=True)


def _write(suite: ClusterSuite, folder: Path) -> None:
    """Write a suite and its dataset.

    Raises:
        UsageError: a file is there already, or cannot be written.
    """
    paths = {folder / name: text for name, text in suite.files.items()}
    for path in paths:
        if path.exists():
            raise UsageError(f"{path} already exists and is not overwritten; name another folder with --output")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in paths.items():
            path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror or error}") from error
    first, second = paths
    out().print(f"wrote {first} and {second}: {count(suite.samples, 'sample')}", soft_wrap=True)
    out().print(f"next: viva run {shlex.quote(str(first))}", soft_wrap=True)


def _headline(report: Clusters) -> str:
    if not report.clusters:
        return f"nothing failed in the {count(report.conversations, 'conversation')} of run {report.run}"
    return (
        f"{report.failed:,} of {count(report.conversations, 'conversation')} of run {report.run} failed: "
        f"{count(len(report.clusters), 'cluster')} (reasons compared by {report.method})"
    )


def _lines(cluster: Cluster) -> Text:
    ends = "" if cluster.low is None or cluster.high is None else f", 95%: {cluster.low:.1%} to {cluster.high:.1%}"
    text = Text(
        f"\n{cluster.id}  {count(cluster.conversations, 'conversation')}  {cluster.share:.1%}{ends}  {cluster.kind}\n"
    )
    if cluster.name is not None:
        text.append(f"  {one_line(cluster.name)}", style="bold").append(" (the model's name)\n", style="dim")
    text.append(f"  {one_line(cluster.title, 200)}\n", style="bold" if cluster.name is None else "")
    if cluster.words:
        text.append(f"  words: {', '.join(cluster.words)}\n", style="dim")
    for example in cluster.examples:
        place = "" if example.turn is None else f", {turn_label(example.turn)}"
        name = conversation_name(example.sample_id, example.trial)
        text.append(f"  {one_line(f'{name}{place}: {example.reason}', 200)}\n")
    text.rstrip()
    return text
