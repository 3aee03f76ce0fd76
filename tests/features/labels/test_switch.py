"""Without labels a conversation is shown, compared, captured and commented on, and a judge keeps its calibration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from server.pages.cases import keep, outcome, per_turn, turn
from vivavoce.records.run import AttemptKey
from vivavoce.store.labels import LabelPlace, now_label
from vivavoce.store.store import Store

CHECK = """
import json, sys
from fastapi.testclient import TestClient
from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.store.store import Store
with Store.open("kept.db") as store:
    with TestClient(create_app(store, Access(frozenset({"testserver"}), frozenset()))) as client:
        found = {path: (page.status_code, page.text) for path in sys.argv[1:] for page in [client.get(path)]}
print(json.dumps(found))
"""
CONVERSATION, RUN, CALIBRATION = "/runs/run-1/samples/one", "/runs/run-1", "/runs/run-1/calibration?grader=goal"
DATA = "/api/v1/runs/run-1/samples/one/0"
ADDRESSES = ("/label", "/label/differing?run=run-1", "/label-queues/q", f"{DATA}/labels", "/api/v1/label-queues")


def test_pages_and_data_of_a_labelled_run_are_shown_without_labels(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "kept.db")) as store:
        keep(store, [outcome("one", [turn(0, "Hi", "Hello")], {"goal": per_turn(1.0)})], fingerprints={"goal": "f1"})
        place = LabelPlace("run-1", AttemptKey("one", "bot", 0), None, "goal", "Olu")
        store.labels.set("run-1", now_label(place, "fail"))
    pages = (CONVERSATION, RUN, CALIBRATION, DATA, f"{DATA}/comments", *ADDRESSES)
    for without in ("", "labels"):
        environment = {**os.environ, "VIVAVOCE_WITHOUT": without}
        command = [sys.executable, "-c", CHECK, *pages]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        data = json.loads(done.stdout)
        for path in (CONVERSATION, RUN, CALIBRATION, DATA, f"{DATA}/comments"):
            assert data[path][0] == 200, path
        there = [path for path in ADDRESSES if data[path][0] == 200]
        assert there == ([] if without else [path for path in ADDRESSES if "/q" not in path])
        links = [path for path in (CONVERSATION, RUN, CALIBRATION) if 'href="/label' in data[path][1]]
        assert links == ([] if without else [CONVERSATION, RUN, CALIBRATION])
        assert "Create a dataset row" in data[CONVERSATION][1]
        assert "Comments" in data[CONVERSATION][1]
