# Every target does its own set-up in .venv: nothing but Python 3.11+ and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.synced

.PHONY: install demo test test-slow lint format docs requirements bench bench-full histories replay reliability clean help
.DEFAULT_GOAL := help

$(STAMP): requirements/uv.txt requirements/dev.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

install: $(STAMP) ## Create .venv with everything, pinned and hashed
	@echo "Installed in $(VENV)."

demo: $(STAMP) ## Watch an agent talk, crash, remember and dream (KEEP=1 leaves the server up)
	@$(BIN)/python examples/demo.py $(if $(KEEP),--keep)

test: $(STAMP) ## Run the tests on a real Temporal server, PostgreSQL and model endpoint
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

test-slow: $(STAMP) ## Run the long tests
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m slow --timeout 600

lint: $(STAMP) ## Check style, types, import rules and spelling
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/pyright
	@$(BIN)/codespell
	@$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml

format: $(STAMP) ## Format the code and fix what ruff can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

# The site's source is a copy, so that a relative link means the same on it as in the repository.
SITE := README.md CHANGELOG.md CONTRIBUTING.md LICENSE docker-compose.yml docs examples

docs: $(STAMP) ## Build the site into .site/html; a broken link or anchor is an error
	@rm -rf .site && mkdir -p .site/source && cp -R $(SITE) .site/source
	@find .site/source -name __pycache__ -prune -exec rm -r {} +
	@$(BIN)/zensical build --strict --clean
	@echo "Serve it with $(BIN)/python -m http.server -d .site/html"

requirements: $(STAMP) ## Pin the newest allowed versions, with hashes
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	  --no-emit-index-url --custom-compile-command "make requirements" --all-extras pyproject.toml -o requirements/runtime.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	  --no-emit-index-url --custom-compile-command "make requirements" --all-extras --group dev pyproject.toml -c requirements/runtime.txt -o requirements/dev.txt
	@echo uv | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	  --no-emit-index-url --custom-compile-command "make requirements" - -o requirements/uv.txt

bench: $(STAMP) ## Measure against bare Temporal and bare drivers; writes docs/performance*.md
	@$(BIN)/python -m benchmarks

bench-full: $(STAMP) ## The same with more rounds
	@$(BIN)/python -m benchmarks --full

histories: $(STAMP) ## Record the workflow histories that the replay tests run over
	@$(BIN)/python tests/replay/record.py

replay: $(STAMP) ## Replay the recorded histories on every supported Python that is found
	@$(BIN)/python tests/replay/pythons.py

reliability: $(STAMP) ## Run the fault cells and the load, half an hour; writes docs/reliability.md
	@$(BIN)/python -m tests.faults.reliability

clean: ## Remove .venv, caches and local data
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .agentmem dist

help: ## Show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/:/' | awk -F': *' '{printf "  %-14s %s\n", $$1, $$2}'
