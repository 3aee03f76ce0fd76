"""A feature can be switched off, and everything else works; the core imports none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from command_line import Viva
from vivavoce.extensions import plugins
from vivavoce.features import FEATURES
from vivavoce.lazy_names import lazy

CHECK = """
import json, sys
from vivavoce.cli.main import commands, main
from vivavoce.extensions import plugins
from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.store.store import Store
from vivavoce.server.app import routers
from fastapi.testclient import TestClient
try:
    main(["run", "suite.yaml", "--quiet"])
except SystemExit as ended:
    code = ended.code
with Store.open(".vivavoce/vivavoce.db") as store:
    run = store.run("latest").id
    app = create_app(store, Access(frozenset({"testserver"}), frozenset()))
    with TestClient(app) as client:
        pages = {path: client.get(path).status_code for path in ("/", f"/runs/{run}", f"/api/v1/runs/{run}")}
        start = client.get("/").text
print(json.dumps({"code": code, "start": start, "routes": [route.path for each in routers() for route in each.routes],
    "commands": list(commands()), "names": plugins().names, "pages": pages,
    "loaded": [name for name in sys.modules if name.startswith("vivavoce.features.")]}))
"""


def what_is_added(feature: str, hook: str) -> Any:
    """Return what a feature answers to a hook, None where it does not implement it."""
    return dict(plugins().results(hook)).get(feature)


def paths(references: Sequence[str]) -> set[str]:
    """Return the paths of the routes of some routers."""
    return {route.path for reference in references for route in lazy(reference).routes}


def test_every_feature_folder_is_a_built_in_plugin() -> None:
    folder = Path(__file__).parents[2] / "src" / "vivavoce" / "features"
    assert {path.parent.name for path in folder.glob("*/__init__.py")} == set(FEATURES)
    assert plugins().names[: len(FEATURES)] == list(FEATURES)


@pytest.mark.parametrize("feature", FEATURES)
def test_without_a_feature_everything_else_works(feature: str, viva: Viva, tmp_path: Path) -> None:
    assert viva("init", ".").returncode == 0
    code = viva("run", "suite.yaml", "--quiet", "--store", "with.db").returncode
    environment = {**os.environ, "VIVAVOCE_WITHOUT": feature}
    done = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["code"] == code
    assert set(seen["pages"].values()) == {200}
    assert feature not in seen["names"]
    assert (what_is_added(feature, "register_commands") or {}).keys() & set(seen["commands"]) == set()
    assert paths(what_is_added(feature, "register_routes") or ()) & set(seen["routes"]) == set()
    assert [
        tab.text for tab in what_is_added(feature, "page_tabs") or () if f'href="{tab.link}"' in seen["start"]
    ] == []
    assert [name for name in seen["loaded"] if name.startswith(f"vivavoce.features.{feature}")] == []
