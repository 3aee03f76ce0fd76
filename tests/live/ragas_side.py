"""What Ragas itself does with our files, and its own: run by `test_ragas` with the Python that has it installed.

`ragas_side.py write FOLDER` writes what its serialisers make; `ragas_side.py read FILE` prints, as JSON, what it reads
there and the scores of its metrics of tool calls.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import asyncio
import json
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import ragas  # noqa: E402
from ragas import EvaluationDataset, MultiTurnSample, SingleTurnSample  # noqa: E402
from ragas.messages import AIMessage, HumanMessage, ToolCall, ToolMessage  # noqa: E402
from ragas.metrics import ToolCallAccuracy, ToolCallF1  # noqa: E402


def write(folder: Path) -> None:
    calls = [ToolCall(name="Weather", args={"place": "NYC", "days": [1, 2]}), ToolCall(name="Traffic", args={})]
    conversation = [
        HumanMessage(content="What's the weather?", metadata={"lang": "en"}),
        AIMessage(content="", tool_calls=calls),
        ToolMessage(content="sunny"),
        ToolMessage(content=""),
        AIMessage(content="Sunny — 75°F."),
    ]
    whole = MultiTurnSample(
        user_input=conversation,
        reference="The weather is told.",
        reference_tool_calls=calls[:1],
        reference_topics=["weather"],
        rubrics={"score1_description": "wrong", "score2_description": "right"},
    )
    bare = MultiTurnSample(user_input=[HumanMessage(content="When?"), AIMessage(content="2024-01-01")])
    several = EvaluationDataset(samples=[whole, bare])
    several.to_jsonl(str(folder / "several.jsonl"))
    several.to_hf_dataset().to_parquet(str(folder / "several.parquet"))
    single = SingleTurnSample(user_input="q", response="a", retrieved_contexts=["c"], multi_responses=["x"])
    EvaluationDataset(samples=[single, SingleTurnSample(user_input="r")]).to_jsonl(str(folder / "single.jsonl"))


def read(path: Path) -> dict[str, object]:
    dataset = EvaluationDataset.from_jsonl(str(path))
    rows = [sample.to_dict() for sample in dataset]
    types = [[type(message).__name__ for message in sample.user_input] for sample in dataset]
    scores = [
        {metric.name: asyncio.run(metric.multi_turn_ascore(sample)) for metric in (ToolCallAccuracy(), ToolCallF1())}
        for sample in dataset
        if sample.reference_tool_calls is not None
    ]
    return {"version": ragas.__version__, "rows": rows, "types": types, "scores": scores}


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]))
    else:
        print(json.dumps(read(Path(sys.argv[2]))))
