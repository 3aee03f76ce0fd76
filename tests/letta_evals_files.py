"""The Python and data files that suites of letta-evals name: files of the same shape, for both ages of its client."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from recordings import RECORDINGS

HISTORY = RECORDINGS / "letta_evals_history"
FIRST_CLIENT = ("0.2.", "0.3.", "0.4.", "0.5.")
"""Releases whose files were written for the client before 1.0."""
AGENT = """\
from letta_client import {names}
from letta_evals.decorators import agent_factory
from letta_evals.models import Sample


@agent_factory
async def setup_agent(client: AsyncLetta, sample: Sample) -> str:
    blocks = [{block}(label="facts", value=str(sample.agent_args.get("facts")))]
    agent = await client.agents.create(name="a", memory_blocks=blocks, model="openai/gpt-4o-mini")
    return agent.id


create_inventory_agent = setup_agent
"""
TOOL = """\
from typing import List, Type

from letta_client.client import BaseTool
from pydantic import BaseModel

TEST_TOOL_NAME = "manage_inventory"


class InventoryEntryData(BaseModel):
    data: str
    quantity_change: int


class ManageInventoryTool(BaseTool):
    name: str = TEST_TOOL_NAME
    args_schema: Type[BaseModel] = InventoryEntryData
    description: str = "Update the inventory"
    tags: List[str] = ["inventory"]

    def run(self, data: str, quantity_change: int) -> str:
        return f"Updated {data} by {quantity_change}"
"""
SETUP = """\
import sys
from pathlib import Path

from letta_client import AsyncLetta

from letta_evals.decorators import suite_setup

sys.path.insert(0, str(Path(__file__).parent))

from inventory_tool import TEST_TOOL_NAME, ManageInventoryTool


@suite_setup
async def prepare_evaluation(client: AsyncLetta{model}) -> None:
    page = await client.tools.list(name=TEST_TOOL_NAME)
    if not page.items:
        await client.tools.add(tool=ManageInventoryTool())
"""
EVALUATORS = """\
import json
from typing import List

from {client} import {message}

from letta_evals.decorators import extractor, grader
from letta_evals.models import GradeResult, LettaMessageUnion, Sample


@extractor
def memory_insert_extractor(trajectory: List[List[LettaMessageUnion]], config: dict) -> str:
    for turn in trajectory:
        for message in turn:
            if isinstance(message, ToolCallMessage) and message.tool_call.name == "memory_insert":
                return message.tool_call.arguments
    return "{{}}"


@grader
def grade_fruit_preference(sample: Sample, submission: str) -> GradeResult:
    kept = json.loads(submission).get("new_str", "")
    found = sample.ground_truth.lower() in kept.lower()
    return GradeResult(score=1.0 if found else 0.0, rationale=f"kept {{kept!r}}", metadata={{"kept": kept}})


json_object_extractor = memory_insert_extractor
ticket_classification_grader = grade_fruit_preference
"""
EXTRACTOR = """\
import json
from typing import List

from letta_evals.decorators import extractor
from letta_evals.extractors.utils import flatten_content, get_assistant_messages
from letta_evals.models import LettaMessageUnion


@extractor
def sandbox_files_extractor(trajectory: List[List[LettaMessageUnion]], config: dict) -> str:
    messages = get_assistant_messages(trajectory)
    return flatten_content(messages[-1].content).strip() if messages else ""


@extractor
def skill_extractor(trajectory: List[List[LettaMessageUnion]], config: dict) -> str:
    return f"Skills used: {sandbox_files_extractor(trajectory, config)}"
"""
GRADER = """\
from pathlib import Path

from letta_evals.decorators import grader
from letta_evals.models import GradeResult, Sample


@grader
async def python_output_grader(sample: Sample, submission: str) -> GradeResult:
    if not Path(submission).exists():
        return GradeResult(score=0.0, rationale=f"File not found: {submission}")
    return GradeResult(score=1.0)
"""
REWARDS = """\
from letta_evals import RewardOutput, reward_composer


@reward_composer
def quality_if_ascii(ctx):
    quality, ascii_only = ctx.grades["quality"].score, ctx.grades["ascii_only"].score
    if ascii_only < 1.0:
        return RewardOutput(score=0.0, metadata={"reason": "ascii_check_failed"})
    return RewardOutput(score=quality)


@reward_composer
def weighted_quality_ascii(ctx):
    return RewardOutput(score=(0.7 * ctx.grades["quality"].score) + (0.3 * ctx.grades["ascii_only"].score))
"""


def suites() -> list[str]:
    """Return the suites of the history, by their paths in it, also those that are there twice under two releases."""
    rows = [path.relative_to(HISTORY).as_posix() for path in HISTORY.rglob("*.yaml") if path.name != "config.yaml"]
    return sorted(rows)


def distinct_suites() -> list[str]:
    """Return the suites that its README lists, each text once."""
    lines = (HISTORY / "README.md").read_text().splitlines()
    return [line.split()[1] for line in lines if line.startswith("- v")]


def complete(name: str, folder: Path) -> Path:
    """Copy a suite of the history with the folder that it is in, write what it names and lacks, and return its path."""
    version, _, _ = name.partition("__")
    place = folder / name.partition("/")[0]
    shutil.copytree(HISTORY / place.name, place)
    suite = folder / name
    text = suite.read_text()
    for base in (suite.parent, suite.parent.parent):
        for file, body in _python(version.removeprefix("v")).items():
            if not (base / file).exists():
                (base / file).write_text(body)
        if not (base / "rubric.txt").exists():
            (base / "rubric.txt").write_text("Is {submission} right?\n")
    for word in text.split():
        _write_data(suite.parent / word.strip("'\""))
    return suite


def _python(version: str) -> dict[str, str]:
    first = version.startswith(FIRST_CLIENT)
    names = "AsyncLetta, CreateBlock, MessageCreate" if first else "AsyncLetta"
    agent = AGENT.format(names=names, block="CreateBlock" if first else "dict")
    message = "LettaMessageUnion, ToolCallMessage" if first else "ToolCallMessage"
    client = "letta_client" if first else "letta_client.types.agents"
    setup = SETUP.format(model=", model_name: str" if version.startswith(("0.8.", "0.9.", "0.10.", "0.11.")) else "")
    return {
        "setup_agent.py": agent,
        "create_agent.py": agent,
        "inventory_tool.py": TOOL,
        "setup.py": setup,
        "setup_cloud_agent.py": f"{agent}\n\n{setup}",
        "custom_evaluators.py": EVALUATORS.format(client=client, message=message),
        "custom_extractor.py": EXTRACTOR,
        "custom_python_grader.py": GRADER,
        "rewards.py": REWARDS,
    }


def _write_data(path: Path) -> None:
    if path.suffix not in (".jsonl", ".csv", ".af") or path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".af":
        path.write_text(json.dumps({"agents": [{"llm_config": {"handle": "openai/gpt-4.1"}}]}))
    elif path.suffix == ".csv":
        values = json.dumps(dict.fromkeys(("rubric_task_completion", "rubric_skill_use", "skill", "files"), "x"))
        quoted = values.replace('"', '""')
        path.write_text(f'input,ground_truth,rubric_vars\nWhat is in the file?,Paris,"{quoted}"\n')
    else:
        path.write_text(json.dumps({"input": "What is in the file?", "ground_truth": "Paris"}) + "\n")
