"""Traces of one turn read in each format beside a bare loop of `json.loads`; memory of a small and a large file."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from vivavoce.conversations.format import Loss, format_named
from vivavoce.conversations.reading import read
from vivavoce.features.formats.conversion import convert

TRACES = 5_000
"""Conversations of a question and an answer in the file of each format."""
TIMES = 5
"""How often each file is read; the fastest counts, for a busy machine makes the others slower."""
QUESTION_COUNT = 20_000
"""Messages a second on one core that were asked for."""
SIZES = (20, 200)
"""Megabytes of the small and the large file."""
WORDS = ["please", "refund", "the", "order", "it", "was", "broken", "thanks", "sorry", "could", "you", "check", "again"]


def openai(number: int, question: str, answer: str) -> Any:
    """Return a conversation in the shape of OpenAI's chat."""
    messages = ({"role": "user", "content": question}, {"role": "assistant", "content": answer})
    return {"id": f"c{number}", "messages": messages}


def _span(number: int, name: str, attributes: dict[str, Any]) -> dict[str, Any]:
    start = 1_795_000_000_000_000_000 + number * 2_000_000_000
    return {
        "traceId": f"{number + 1:032x}",
        "spanId": f"{number + 1:016x}",
        "name": name,
        "kind": 3,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 1_000_000_000),
        "attributes": [{"key": key, "value": _otlp(value)} for key, value in attributes.items()],
        "status": {},
    }


def _otlp(value: Any) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def _otlp_line(number: int, attributes: dict[str, Any]) -> Any:
    scopes: list[Any] = [{"spans": [_span(number, "chat m", attributes)]}]
    return {"resourceSpans": [{"scopeSpans": scopes}]}


def _number_known(number: int) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.conversation.id": f"c{number}",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 25,
        "gen_ai.usage.output_tokens": 40,
    }


def otel(number: int, question: str, answer: str) -> Any:
    """Return a span with its messages in two attributes."""
    arguments = [{"role": "user", "parts": [{"type": "text", "content": question}]}]
    messages = [{"role": "assistant", "parts": [{"type": "text", "content": answer}], "finish_reason": "stop"}]
    fields = {"gen_ai.input.messages": json.dumps(arguments), "gen_ai.output.messages": json.dumps(messages)}
    return _otlp_line(number, {**_number_known(number), **fields})


def otel_indexed(number: int, question: str, answer: str) -> Any:
    """Return a span as OpenLLMetry wrote it, with an attribute for each field of a message."""
    fields = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": question,
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": answer,
        "gen_ai.completion.0.finish_reason": "stop",
    }
    return _otlp_line(number, {**_number_known(number), **fields})


def _open_inference(number: int, question: str, answer: str) -> dict[str, Any]:
    return {
        "openinference.span.kind": "LLM",
        "session.id": f"c{number}",
        "llm.model_name": "m",
        "llm.token_count.prompt": 25,
        "llm.token_count.completion": 40,
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": question,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
        "input.value": question,
        "output.value": answer,
    }


def openinference(number: int, question: str, answer: str) -> Any:
    """Return a span in OpenInference's words, as a collector writes it."""
    return _otlp_line(number, _open_inference(number, question, answer))


def phoenix(number: int, question: str, answer: str) -> Any:
    """Return a span as Phoenix exports it."""
    return {
        "name": "chat",
        "context": {"trace_id": f"{number + 1:032x}", "span_id": f"{number + 1:016x}"},
        "span_kind": "LLM",
        "parent_id": None,
        "start_time": "2026-11-22T10:00:00.500000+00:00",
        "end_time": "2026-11-22T10:00:01.500000+00:00",
        "status_code": "OK",
        "status_message": "",
        "attributes": _open_inference(number, question, answer),
        "events": [],
    }


def langfuse(number: int, question: str, answer: str) -> Any:
    """Return an observation of Langfuse."""
    return {
        "id": f"o{number}",
        "traceId": f"t{number}",
        "parentObservationId": None,
        "type": "GENERATION",
        "name": "chat",
        "startTime": "2026-11-22T10:00:00.500Z",
        "endTime": "2026-11-22T10:00:01.500Z",
        "sessionId": f"c{number}",
        "level": "DEFAULT",
        "statusMessage": None,
        "model": "m",
        "usageDetails": {"input": 25, "output": 40, "total": 65},
        "input": [{"role": "user", "content": question}],
        "output": {"role": "assistant", "content": answer},
    }


MAKERS: dict[str, tuple[str, Callable[[int, str, str], Any]]] = {
    "openai": ("openai", openai),
    "otel": ("otel", otel),
    "otel, indexed": ("otel", otel_indexed),
    "openinference": ("otel", openinference),
    "phoenix": ("openinference", phoenix),
    "langfuse": ("langfuse", langfuse),
}
"""By what a file holds: its format, and what makes a record of it."""


def make_messages(draw: random.Random) -> tuple[str, str]:
    """Return a question and an answer."""
    return " ".join(draw.choices(WORDS, k=25)), " ".join(draw.choices(WORDS, k=40))


def fastest(run: Callable[[], int]) -> float:
    """Return how many of what a function counts it does in a second of the processor."""
    best = 0.0
    for _ in range(TIMES):
        started = time.process_time()
        done = run()
        best = max(best, done / (time.process_time() - started))
    return best


def measure_speed(folder: Path, name: str) -> None:
    """Print how fast a format is read."""
    format_, make = MAKERS[name]
    draw, file = random.Random(1), folder / f"{name}.jsonl"
    with file.open("w") as out:
        for number in range(TRACES):
            out.write(json.dumps(make(number, *make_messages(draw))) + "\n")

    def bare() -> int:
        with file.open("rb") as lines:
            return 2 * sum(1 for _ in map(json.loads, lines))

    def ours() -> int:
        return sum(len(row["messages"]) for _, row in read(file, format_named(format_), Loss()))

    loaded, result = fastest(bare), fastest(ours)
    print(
        f"{name}: {result:,.0f} messages/s (asked: ≥ {QUESTION_COUNT:,}); time over json.loads × {loaded / result:.1f}"
    )


def document(folder: Path, name: str, megabytes: int) -> Path:
    """Write a file of that size: lines of OpenAI's chat, or one document of Phoenix."""
    make, is_lines = MAKERS[name][1], name == "openai"
    draw, file = random.Random(1), folder / f"{name}-{megabytes}.{'jsonl' if is_lines else 'json'}"
    with file.open("w") as out:
        out.write("" if is_lines else '{"data": [\n')
        for number in count():
            text = json.dumps(make(number, *make_messages(draw)))
            out.write(f"{text}\n" if is_lines else f"{',' if number else ''}{text}\n")
            if out.tell() >= megabytes * 1_000_000:
                break
        out.write("" if is_lines else "]}\n")
    return file


def memory(folder: Path, name: str) -> None:
    """Print the peak of memory while files of two sizes are converted, each in a process of its own."""
    peaks: list[float] = []
    for megabytes in SIZES:
        file = document(folder, name, megabytes)
        done = subprocess.run([sys.executable, __file__, str(file)], check=True, capture_output=True, text=True)
        peaks.append(float(done.stdout))
        file.unlink()
    small, large = peaks
    sizes = f"{small:.0f} MB for {SIZES[0]} MB, {large:.0f} MB for {SIZES[1]} MB"
    print(f"{name}: peak of memory {sizes}: × {large / small:.2f} (asked: flat)")


def child(file: Path) -> None:
    """Convert a file whose format is told by its content, and print the megabytes that it took."""
    convert(file, file.with_suffix(".out"), format_named("openai"), Loss())
    file.with_suffix(".out").unlink()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Measure each format, then the memory of lines and of one document."""
    with tempfile.TemporaryDirectory() as name:
        for format_ in MAKERS:
            measure_speed(Path(name), format_)
        for format_ in ("openai", "phoenix"):
            memory(Path(name), format_)


if __name__ == "__main__":
    child(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
