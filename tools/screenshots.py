"""Draw the pictures of the docs, `make screenshots`: pages into docs/pages, those of the README into docs/images."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from vivavoce.client import Client

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "pages"
IMAGES = ROOT / "docs" / "images"
README_FILE = re.compile(r"^```\S+ (\S+)$\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TERMINAL_COLUMNS = 128
TERMINAL_PAGE = """<meta charset="utf-8"><style>body {{ margin: 0; background: {background}; color: {foreground} }}
pre {{ margin: 0; padding: 16px; font: 14px/1.4 "DejaVu Sans Mono", monospace }}</style>
<pre style="width: max-content">$ viva run suite.yaml; echo "exit code $?"
{code}</pre>"""
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


@contextmanager
def serve(folder: str, store: str) -> Generator[str]:
    """Serve the pages of a store from a folder, and yield their address."""
    command = [str(VIVA), "view", "--no-browser", "--store", store]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def draw_example(browser: Browser) -> None:
    """Run the example, serve its runs, and draw every page."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "kept.db")
        shutil.copytree(EXAMPLE, Path(folder) / EXAMPLE.name)
        demo = ["bash", str(EXAMPLE / "demo.sh")]
        environment = {**os.environ, "DEMO_STORE": store, "VIVA": str(VIVA)}
        subprocess.run(demo, env=environment, stdout=subprocess.DEVNULL, check=True)
        with serve(folder, store) as address:
            with Client(address) as client:
                job = client.submit("suite", suite=f"{EXAMPLE.name}/suite.yaml").wait()
            draw(browser, address, job.id)


def draw_readme(browser: Browser) -> None:
    """Run the suite of the README, and draw its output in a terminal and the page of its run."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in README_FILE.findall((ROOT / "README.md").read_text(encoding="utf-8")):
            (Path(folder) / name).write_text(text, encoding="utf-8")
        environment = {**os.environ, "COLUMNS": str(TERMINAL_COLUMNS), "FORCE_COLOR": "1"}
        done = subprocess.run(
            [str(VIVA), "run", "suite.yaml", "--quiet"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
        )
        assert done.returncode == 1, f"the build of the README is not red: exit code {done.returncode}"
        page = browser.new_page(viewport={"width": 1200, "height": 690})
        page.set_content(terminal_page(f"{done.stdout}exit code {done.returncode}"))
        page.locator("pre").screenshot(path=IMAGES / "red-build.png")
        with serve(folder, str(Path(folder) / ".vivavoce" / "vivavoce.db")) as address:
            page.goto(f"{address}runs/latest")
            page.screenshot(path=IMAGES / "run.png")


def terminal_page(output: str) -> str:
    """Return a page that shows the output of a command as a terminal does."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=TERMINAL_COLUMNS, file=nowhere)
        console.print(Text.from_ansi(output.rstrip()))
    return console.export_html(theme=MONOKAI, inline_styles=True, code_format=TERMINAL_PAGE)


def main() -> None:
    """Draw the pages of the example and the pictures of the README."""
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        sys.exit("there is no Chromium: `make programs` installs it")
    for folder in (OUT, IMAGES):
        folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ALONE)
        draw_readme(browser)
        draw_example(browser)
    for folder in (IMAGES, OUT):
        print(f"{folder.relative_to(ROOT)}: {', '.join(sorted(path.name for path in folder.glob('*.png')))}")


if __name__ == "__main__":
    main()
