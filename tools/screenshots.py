"""Draws the pages of the example, light and dark, into docs/pages: `make screenshots`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from vivavoce.client import Client

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "pages"
VIVA = Path(sys.executable).with_name("viva")
ALONE = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
EXAMPLE = ROOT / "examples" / "support_bot"
PAGES = {
    "runs": "",
    "run": "runs/latest~3",
    "conversation": "runs/latest~3/samples/question-before-yes",
    "test": "runs/latest~1/samples/test",
    "compare": "compare?a=latest~4&b=latest~3",
    "trends": "trends?suite=support%20bot",
    "label": "label?run=latest~3&grader=answers",
    "jobs": "jobs",
    "job": "jobs/{job}",
    "new-job": "jobs/new?suite=support_bot/suite.yaml",
}
WIDTHS = {"": 1280, "-narrow": 380}


def draw(browser: Browser, address: str, job: str) -> None:
    """Draw every page in both schemes, and light ones as narrow as a telephone; `job` is one that is over."""
    for scheme in ("light", "dark"):
        for ending, width in WIDTHS.items():
            if ending and scheme == "dark":
                continue
            context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
            page = context.new_page()
            page.set_viewport_size({"width": width, "height": 900})
            for name, path in PAGES.items():
                page.goto(address + path.format(job=job))
                page.screenshot(path=OUT / f"{name}-{scheme}{ending}.png", full_page=True)
            context.close()


def main() -> None:
    """Hold the conversations of the example, serve them, and draw."""
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        sys.exit("there is no Chromium: `make programs` installs it")
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "kept.db")
        shutil.copytree(EXAMPLE, Path(folder) / EXAMPLE.name)
        demo = ["bash", str(EXAMPLE / "demo.sh")]
        subprocess.run(
            demo, env={**os.environ, "DEMO_STORE": store, "VIVA": str(VIVA)}, stdout=subprocess.DEVNULL, check=True
        )
        view = [str(VIVA), "view", "--no-browser", "--store", store]
        with subprocess.Popen(view, cwd=folder, stdout=subprocess.PIPE, text=True) as serving:
            try:
                assert serving.stdout is not None
                address = serving.stdout.readline().strip()
                with Client(address) as client:
                    job = client.submit("suite", suite=f"{EXAMPLE.name}/suite.yaml").wait()
                with sync_playwright() as playwright:
                    draw(playwright.chromium.launch(executable_path=chromium, args=ALONE), address, job.id)
            finally:
                serving.terminate()
    print(f"drawn into {OUT.relative_to(ROOT)}: {', '.join(sorted(one.name for one in OUT.glob('*.png')))}")


if __name__ == "__main__":
    main()
