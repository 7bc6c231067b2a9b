# One line each; everything works on a fresh clone with Python 3.11 or newer (with venv), make and git.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
BIN := .venv/bin
# One test process more than there are processors: some tests wait for other processes.
TESTERS = $(shell $(BIN)/python -c 'import os; print(1 + (os.cpu_count() or 1))')

.PHONY: demo test bench agents lint types contracts check schema serve clean

demo: .venv/ready ## watch a long session survive its compactions
	@$(BIN)/goalkeeper demo

test: .venv/ready ## the whole suite
	@$(BIN)/python -m pytest -n $(TESTERS) --dist worksteal -q

bench: .venv/ready ## speed and cost, side by side
	@$(BIN)/python -m benchmarks

agents: .venv/ready ## real agents behind the proxy (npm, and twenty minutes): make agents ARGS="--only pi,codex"
	@$(BIN)/python -m agents $(ARGS)

lint: .venv/ready ## style
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: .venv/ready ## mypy, strict
	@$(BIN)/mypy

contracts: .venv/ready ## who may import whom
	@$(BIN)/lint-imports

check: lint types contracts test ## all of the above but the demo and the benchmarks

schema: .venv/ready ## renew config/schema after a change of what rule files, profiles or settings may hold
	@for what in rules profiles settings; do $(BIN)/goalkeeper schema $$what > config/schema/$$what.json; done

serve: .venv/ready ## the proxy itself: make serve ARGS="--port 9000"
	@$(BIN)/goalkeeper serve $(ARGS)

.venv/ready: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Goalkeeper needs Python 3.11 or newer with the venv module." >&2; exit 1; }
	@echo "setting up .venv with $(PYTHON), once; this takes a minute or two"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q proxy
	@touch $@

clean: ## forget the environment and all caches
	rm -rf .venv build dist .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
