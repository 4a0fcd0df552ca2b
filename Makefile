# `make demo` and `make test` set everything up by themselves; the second time nothing is downloaded.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo ui test lint suite mutants bench lock

demo: $(READY)
	$(BIN)/disclosure-pipeline demo --home dagster_home

# The demo makes its own keys; a gate of yours needs yours.
KEYS := $(CURDIR)/dagster_home/demo/keys
ui: export DISCLOSURE_PIPELINE_SIGNING_KEY ?= $(KEYS)/signing-key.pem
ui: export DISCLOSURE_PIPELINE_SALT ?= $(KEYS)/salt
ui: $(READY)
	DAGSTER_HOME=$(CURDIR)/dagster_home VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/dg dev

# Types are checked beside the tests: mypy uses one processor only.
test: $(READY)
	$(MAKE) --jobs 2 --no-print-directory lint suite

lint: $(READY)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

suite: $(READY)
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# Small faults in a copy of the code, and which of them no test notices.
MINUTES ?= 20
mutants: $(READY)
	PYTHONPATH=tests $(BIN)/python tests/mutants.py --minutes $(MINUTES)

bench: $(READY)
	$(BIN)/python benchmarks/run.py

# The marker is written last, so that an interrupted set-up is taken up again.
$(READY): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# Same versions for every supported Python; only names, versions and hashes are written.
EXTRAS := --extra duckdb --extra ibis --extra prediction --extra s3 --extra slack --extra spark --extra sql --extra ui
lock: $(READY)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-strip-extras \
		--no-header --no-annotate $(EXTRAS) --group dev pyproject.toml --output-file requirements.lock
