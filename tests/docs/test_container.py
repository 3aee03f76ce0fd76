"""The container and the services of compose.yaml are what docs/guides/team.md says of them."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
EXACT = re.compile(r"[\w./-]+(?:@sha256:[0-9a-f]{64}|:\d+\.\d+(?:\.\d+)?-[a-z][\w-]*)")
"""An image by its digest, or by a whole version and its base."""
GUIDE = (ROOT / "docs" / "guides" / "team.md").read_text(encoding="utf-8")


class Instruction(NamedTuple):
    """One instruction of a Containerfile."""

    name: str
    text: str


def instructions() -> list[Instruction]:
    """Return the instructions in order, each on one line."""
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    parts = [line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#")]
    return [Instruction(name, " ".join(text.split())) for name, text in parts]


def last_stage() -> list[Instruction]:
    """Return the instructions of the image that runs."""
    found = instructions()
    return found[max(i for i, one in enumerate(found) if one.name == "FROM") :]


def text_of(name: str) -> str:
    """Return the only instruction of a name in the image that runs."""
    (text,) = [instruction.text for instruction in last_stage() if instruction.name == name]
    return text


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    loaded: Any = YAML(typ="safe").load((ROOT / "compose.yaml").read_text(encoding="utf-8"))  # pyright: ignore[reportUnknownMemberType]
    return loaded["services"]


def test_every_image_is_pinned(services: dict[str, Any]) -> None:
    (base,) = [instruction.text for instruction in instructions() if instruction.name == "ARG"]
    assert EXACT.fullmatch(base.removeprefix("PYTHON_IMAGE="))
    assert {instruction.text.split()[0] for instruction in instructions() if instruction.name == "FROM"} == {
        "${PYTHON_IMAGE}"
    }
    assert EXACT.fullmatch(services["database"]["image"])


def test_it_does_not_run_as_root(services: dict[str, Any]) -> None:
    user = text_of("USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)  # numbers, so that an engine can tell that it is not root
    assert f"user {user.partition(':')[0]}" in GUIDE
    order = [instruction.name for instruction in last_stage()]
    assert "RUN" not in order[order.index("USER") :]
    assert "user" not in services["viva"]


def test_it_cannot_change_itself_and_has_one_volume(services: dict[str, Any]) -> None:
    viva = services["viva"]
    assert text_of("VOLUME") == text_of("WORKDIR") == "/data"
    assert viva["read_only"] is True
    assert [volume.partition(":")[2] for volume in viva["volumes"]] == ["/data"]
    assert [mount.partition(":")[0] for mount in viva["tmpfs"]] == ["/tmp"]
    assert (viva["cap_drop"], viva["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert "privileged" not in viva


def test_its_health_is_that_of_the_process_at_the_port_it_serves(services: dict[str, Any]) -> None:
    health = text_of("HEALTHCHECK")
    assert f"http://127.0.0.1:{text_of('EXPOSE')}/livez" in health
    code = health.partition("CMD ")[2]
    compile(shlex.split(code.strip("[]").replace('",', '" '))[2], "health", "exec")
    assert services["viva"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert services["database"]["healthcheck"]["test"][1] == "pg_isready"


def test_only_this_machine_reaches_it_and_nobody_the_database(services: dict[str, Any]) -> None:
    assert services["viva"]["ports"] == [f"127.0.0.1:{text_of('EXPOSE')}:{text_of('EXPOSE')}"]
    assert "ports" not in services["database"]


def test_no_secret_is_in_the_files(services: dict[str, Any]) -> None:
    for service in services.values():
        for name, value in service["environment"].items():
            if name.endswith(("KEY", "PASSWORD", "STORE")):
                assert re.search(r"\$\{\w+:[-?]", value), name
    assert not [
        instruction for instruction in instructions() if instruction.name == "ENV" and "KEY" in instruction.text
    ]


def test_what_is_built_is_in_the_context() -> None:
    allowed = {
        line[1:] for line in (ROOT / ".containerignore").read_text(encoding="utf-8").splitlines() if line[:1] == "!"
    }
    copied = {
        name.rstrip("/")
        for instruction in instructions()
        if instruction.name == "COPY" and "--from" not in instruction.text
        for name in instruction.text.split()[:-1]
    }
    assert copied == allowed
    with (ROOT / "pyproject.toml").open("rb") as file:
        built = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*built["force-include"], "src"} <= copied
    assert all((ROOT / name).exists() for name in copied)
