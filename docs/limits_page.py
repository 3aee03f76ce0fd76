"""The page about limits: each number is read from the module that enforces it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

HEAD = """# Limits

<!-- Written by docs/generate.py from the constants of the modules. Change a constant, then run: make docs -->

Suites, requests, and what models and targets answer may come from people you do not know. Each limit below is checked
wherever such text is read, so that no template, schema, pattern, or file can stop a server or a command. Nothing is cut
or guessed: what goes beyond a limit is refused, or is an error of that one score.

"Refused" means: a command ends with exit code 2 and names the file and line, and the API answers with 422 (413 for
bytes). "Error" means: the score has the state `error`, which never counts as a pass or as 0. A request that is ended is
answered with 422, or with 503 where its process is gone without a reason.
"""


@dataclass(frozen=True, slots=True)
class Limit:
    """One bound: where its number lives, in which unit, what it is a limit of, and what happens beyond it."""

    module: str
    constant: str
    unit: str
    what: str
    beyond: str = "refused"

    @property
    def value(self) -> int | float:
        """Return the number that the module enforces."""
        return getattr(import_module(f"vivavoce.{self.module}"), self.constant)

    @property
    def key(self) -> str:
        """Return the place of the constant."""
        return f"{self.module}.{self.constant}"


_ERROR = "error of the score"
_ENDED = "the request is ended"
_TURNED_AWAY = "503, or in place of one without a request or whose client does not read"
_CLOSED = "the connection is closed"
_FULL = "429"
_WAITS = "it waits while others have their turn"
_NO_ROOM = "others wait, or 429 for an answer that can be asked for again"
_KILLED = "the process ends; what was committed is kept"
_LEFT_OUT = "the rest is left out"
_TEMPLATES = "safe_template"
_SCHEMAS = "models.json_schema"
_CHECKS = "models.schema_check"
_SIMILARITY = "comparing.similarity"

SECTIONS: dict[str, tuple[Limit, ...]] = {
    "Templates (prompts, inputs, bodies of HTTP targets)": (
        Limit(_TEMPLATES, "MAX_TEMPLATE_CHARS", "characters", "text of a template"),
        Limit(_TEMPLATES, "MAX_NODES", "parts", "variables, texts, tests, and branches of a template"),
        Limit(_TEMPLATES, "MAX_DEPTH", "levels", "nested expressions and blocks"),
        Limit(_TEMPLATES, "MAX_NESTED_LOOPS", "loops", "loops inside one another"),
        Limit(_TEMPLATES, "MAX_SEPARATOR_CHARS", "characters", "text that `join` writes between two items"),
        Limit(_TEMPLATES, "MAX_STEPS", "steps", "turns of all loops, and values read, in one rendering", _ERROR),
        Limit(_TEMPLATES, "MAX_OUTPUT_CHARS", "characters", "text that one rendering produces", _ERROR),
    ),
    "JSON Schema": (
        Limit(_SCHEMAS, "MAX_SCHEMA_NODES", "values", "values of a schema, at all levels"),
        Limit(_SCHEMAS, "MAX_SCHEMA_DEPTH", "levels", "levels of a schema"),
        Limit(_SCHEMAS, "MAX_SCHEMA_CHARS", "characters", "a schema as JSON"),
        Limit(_SCHEMAS, "MAX_PATTERN_PARTS", "parts", "parts of all its patterns once `{1000}` is written out"),
        Limit(_CHECKS, "MAX_STEPS", "steps", "keywords that one check evaluates, what they read, and mistakes", _ERROR),
        Limit(_CHECKS, "MAX_REFERENCES", "references", "`$ref` followed one inside another", _ERROR),
    ),
    "Regular expressions": (
        Limit("safe_regex", "MAX_PATTERN_CHARS", "characters", "text of a pattern"),
        Limit("safe_regex", "MAX_REPEATED_PARTS", "parts", "parts of a pattern once `{1000}` is written out"),
        Limit("safe_regex", "SECONDS", "seconds", "one search; also all searches of one check of a schema", _ERROR),
    ),
    "Similarity of texts": (
        Limit(_SIMILARITY, "MAX_COMPARED_CHARS", "characters", "each text of `fuzzy_ratio` and `fuzzy`", _ERROR),
        Limit(_SIMILARITY, "MAX_COMPARED_TEXTS", "messages", "messages that `repetition` compares", _ERROR),
        Limit(_SIMILARITY, "MAX_COMPARED_WORDS", "words", "words of all messages that `repetition` compares", _ERROR),
    ),
    "Numbers in text": (
        Limit("comparing.numbers", "MAX_TEXT_CHARS", "characters", "a text in which numbers are read", _ERROR),
    ),
    "Questions to judges": (
        Limit("metrics.judging", "MAX_WINDOW_TURNS", "turns", "`window` of a judged metric"),
        Limit("metrics.judging", "MAX_PIECE_TOKENS", "tokens", "`tokens` of a judged metric"),
        Limit(
            "metrics.judging",
            "MAX_QUESTION_CHARS",
            "characters",
            "all questions of a metric about one conversation",
            _ERROR,
        ),
    ),
    "Personal data": (
        Limit(
            "metrics.exact.personal_data",
            "MAX_SEARCHED_CHARS",
            "characters",
            "each message that `personal_data` searches",
            _ERROR,
        ),
    ),
    "Assertions of a row": (
        Limit("grading.expected", "MAX_ASSERTIONS", "assertions", "`expect` of a row, and those inside others", _ERROR),
    ),
    "Tool calls": (
        Limit("metrics.exact.tool_calls", "MAX_PAIRS", "pairs", "calls that are compared each with each", _ERROR),
    ),
    "Phrases": (
        Limit("metrics.exact.speakers", "MAX_PHRASES", "phrases", "`terms` of `profanity_terms`, `phrases` of others"),
    ),
    "Files": (
        Limit("suites.document", "MAX_BYTES", "bytes", "a YAML file"),
        Limit("suites.document", "MAX_NODES", "values", "values of a YAML file, after its aliases are expanded"),
        Limit("suites.document", "MAX_CHARS", "characters", "values of a YAML file, after its aliases are expanded"),
        Limit("suites.document", "MAX_DEPTH", "levels", "levels of a YAML file"),
        Limit("comparing.json_values", "MAX_DEPTH", "levels", "levels of JSON in files, replies, and requests"),
    ),
    "Filters and searches": (
        Limit("store.browse.filter", "LONGEST", "characters", "a filter"),
        Limit("store.browse.filter", "MOST", "terms", "terms of a filter"),
        Limit("store.search.query", "LONGEST", "characters", "a search"),
        Limit("store.search.query", "MOST_WORDS", "words", "words of a search"),
        Limit("store.search.query", "MOST_TERMS", "operators", "operators of a search"),
    ),
    "Requests to a server": (
        Limit("server.access", "MAX_BODY", "bytes", "the body of a request"),
        Limit("server.api.strict", "MAX_VALUES", "values", "values of the JSON of a request, at all levels"),
        Limit("work_time", "REQUEST_SECONDS", "processor seconds", "all checks of a request together", _ERROR),
        Limit("work_time", "CONVERSATION_SECONDS", "processor seconds", "all checks of a job's conversation", _ERROR),
        Limit("server.processes", "KILL_SECONDS", "processor seconds", "the process of a request", _ENDED),
        Limit("server.processes", "MAX_BYTES", "bytes", "the memory of the process of a request, on Linux", _ENDED),
        Limit(
            "server.api.evaluations",
            "MAX_ANSWER_BYTES",
            "bytes",
            "the answer of an evaluation, with the measured texts",
        ),
        Limit("server.process_route", "MAX_AT_ONCE", "requests", "evaluations and checks of jobs at a time", _WAITS),
        Limit("server.process_route", "MAX_AT_ONCE_FOR_USER", "requests", "the same of one user", _WAITS),
        Limit("server.app", "THREADS_FOR_USER", "requests", "of one user in threads at a time", _WAITS),
        Limit("server.app", "WRITES", "requests", "requests that write at a time", _WAITS),
        Limit("server.app", "WRITES_FOR_USER", "requests", "the same of one user", _WAITS),
        Limit("server.app", "EXPORTS", "exports", "exports at a time", _WAITS),
        Limit("server.app", "EXPORTS_FOR_USER", "exports", "the same of one user", _WAITS),
        Limit("server.app", "STREAMS", "streams", "streams of events of jobs at a time", _FULL),
        Limit("server.app", "STREAMS_FOR_USER", "streams", "the same of one user", _FULL),
        Limit("server.app", "REPLAYS", "streams", "streams that send past events at a time", _WAITS),
        Limit("server.app", "REPLAYS_FOR_USER", "streams", "the same of one user", _WAITS),
        Limit("features.clusters.cache", "SEARCHES", "runs", "searches for clusters at a time", _WAITS),
        Limit("features.clusters.cache", "SEARCHES_FOR_USER", "runs", "the same of one user", _WAITS),
        Limit("store.access", "MAX_OF_TOKEN", "sessions", "sessions of a token", "the one unused longest ends"),
        Limit("store.jobs", "KEPT_BYTES", "bytes", "kept events of a job", "the oldest are dropped"),
        Limit(
            "server.processes",
            "SUITE_MEMORY_SHARE",
            "of the machine's memory",
            "the memory of a job of a suite, on Linux, where that is more; any other job has that of a request",
            "error of the score, or the job ends",
        ),
        Limit("server.connection", "MAX_CONNECTIONS", "connections", "connections at a time", _TURNED_AWAY),
        Limit(
            "server.connection",
            "MAX_CONNECTIONS_OF_ADDRESS",
            "connections",
            "the same of one address that is not of this machine, and at most half of all",
            _TURNED_AWAY,
        ),
        Limit("server.connection", "LONGEST", "seconds", "until a request has arrived that the server reads", _CLOSED),
        Limit("server.connection", "STALL_SECONDS", "seconds", "in which a client reads nothing of an answer", _CLOSED),
        Limit(
            "server.traffic",
            "MAX_REQUESTS_OF_USER",
            "requests",
            "requests of one user in progress, and at most half of all connections",
            "429",
        ),
        Limit("server.traffic", "MAX_BYTES", "bytes", "large bodies, and large answers, of all requests", _NO_ROOM),
        Limit("server.traffic", "MAX_BYTES_OF_USER", "bytes", "the same of one user, or one larger one", _NO_ROOM),
        Limit("server.pages.forms", "MAX_FORM", "bytes", "a form of a page"),
        Limit("server.job_requests", "MOST_AT_ONCE", "conversations", "conversations of a job at a time"),
        Limit("server.job_work", "MAX_AT_ONCE_FOR_USER", "jobs", "jobs of one user at a time on one server", _WAITS),
        Limit("server.jobs", "MAX_WAITING_FOR_USER", "jobs", "unfinished jobs of one user", "429"),
        Limit("server.webhooks", "MAX_RECEIVERS", "webhooks", "webhooks that a server sends to at a time", _WAITS),
    ),
    "Commands": (
        Limit("run.execution", "DROP_SECONDS", "seconds", "until a run has ended after a second Ctrl-C", _KILLED),
    ),
    "Traces (`viva watch`)": (
        Limit("features.watch.intake", "MAX_MEMBERS", "members", "members of a compressed body", "400"),
        Limit("features.watch.intake", "MAX_KEPT_BYTES", "bytes", "spans of a request, as they are kept", _LEFT_OUT),
        Limit("features.watch.settling", "MOST_SPANS", "spans", "a conversation", _LEFT_OUT),
        Limit(
            "features.formats.otel", "MAX_NAME_CHARS", "characters", "the whole name of a nested attribute", _LEFT_OUT
        ),
        Limit(
            "features.formats.traced", "MAX_LINES", "lines of talk", "with which a model call is compared", _LEFT_OUT
        ),
        Limit(
            "features.formats.traced", "MAX_COPIES", "messages", "answers of a call that get its passages", _LEFT_OUT
        ),
    ),
    "What people write": (
        Limit("records.label", "LONGEST_COMMENT", "characters", "a comment"),
        Limit("records.label", "LONGEST_NOTE", "characters", "the note of a label"),
        Limit("records.label", "LONGEST_TITLE", "characters", "the title of a run"),
        Limit("records.label", "LONGEST_NOTES", "characters", "the notes of a run"),
        Limit("records.label", "LONGEST_TAG", "characters", "a tag of a run"),
        Limit("records.label", "MOST_TAGS", "tags", "tags of a run"),
        Limit("store.views", "LONGEST_NAME", "characters", "the name of a saved view"),
    ),
}


def limits() -> list[Limit]:
    """Return all limits."""
    return [limit for section in SECTIONS.values() for limit in section]


def limits_page() -> str:
    """Return the page about limits."""
    lines = [HEAD]
    for title, rows in SECTIONS.items():
        lines += [f"## {title}", "", "| what | at most | beyond | constant |", "|---|---|---|---|"]
        lines += [f"| {row.what} | {row.value:,} {row.unit} | {row.beyond} | `{row.key}` |" for row in rows]
        lines.append("")
    settings = import_module("vivavoce.server.requested_metrics").SETTINGS
    lines += ["## Settings of a judge in requests", "", "A request may set nothing else. Each may also be `null`.", ""]
    lines += [
        "| setting | value |",
        "|---|---|",
        *(f"| `{name}` | {rule.expected} |" for name, rule in settings.items()),
    ]
    lines.append("")
    return "\n".join(lines)
