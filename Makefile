# Two commands: `make demo` shows Headwater at work, `make test` checks all of it.
.DEFAULT_GOAL := help
SHELL := bash
BIN := .venv/bin

.PHONY: help
help: ## What can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

.PHONY: setup
setup: ## Bring what is missing: JDK, Maven, uv, Python packages, JVM parts, the explorer's page
	@infra/setup.sh

.PHONY: setup-test
setup-test: ## The same, and Chromium for the browser tests
	@infra/setup.sh test

.PHONY: demo
demo: setup ## From a tweet to an answer, on real services
	@$(BIN)/headwater demo

.PHONY: test
test: setup-test lint ## All checks and all tests
	@$(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder

.PHONY: lint
lint: setup ## Style, types and layers
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy
	@PYTHONPATH=plugins $(BIN)/lint-imports --no-logo

.PHONY: lock
lock: setup ## Pin the newest versions that fit pyproject.toml, with hashes
	@uv pip compile pyproject.toml --group dev --generate-hashes --python-version 3.11 --no-header -q -U -o requirements.lock

.PHONY: clean
clean: ## Stop the services and remove everything that was fetched or made
	@[ ! -x $(BIN)/headwater ] || $(BIN)/headwater down
	@rm -rf .venv .headwater plugins/headwater_airflow/explorer/static plugins/headwater_airflow/explorer/web/node_modules
