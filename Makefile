# Each command sets up by itself what it needs, the demo less than the tests; the second time nothing is downloaded.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN = $(VENV)/bin
READY := $(VENV)/ready

# Where everything is installed, the demo takes that.
FULL := $(wildcard $(READY))
DEMO_READY := $(if $(FULL),$(READY),$(VENV)/ready-demo)
UI_READY := $(if $(FULL),$(READY),$(VENV)/ready-ui)
DOCS_READY := $(if $(FULL),$(READY),$(VENV)/ready-docs)

.PHONY: demo ui test lint suite suite-lowest suite-newest python-lowest python-newest docs reference dist mutants house \
	bench study lock

demo: $(DEMO_READY)
	$(BIN)/disclosure-pipeline demo --home dagster_home

# The demo makes its own keys; a gate of yours needs yours.
KEYS := $(CURDIR)/dagster_home/demo/keys
ui: export DISCLOSURE_PIPELINE_SIGNING_KEY ?= $(KEYS)/signing-key.pem
ui: export DISCLOSURE_PIPELINE_SALT ?= $(KEYS)/salt
ui: $(UI_READY)
	DAGSTER_HOME=$(CURDIR)/dagster_home VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/dg dev

# Types are checked beside the tests: mypy uses one processor only.
test: $(READY)
	$(MAKE) --jobs 2 --no-print-directory lint suite

lint: $(READY)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

suite: $(READY)
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# The core of the tests, with few random examples and without what takes long: with the lowest versions that
# pyproject.toml allows, and with the newest, each in an environment and with a Python of its own, the first that is
# on the path or that pyenv has.
LOWEST := 3.10
NEWEST := 3.13
LEFT_OUT := $(addprefix --ignore tests/,counting/test_guards_of_engines.py counting/test_relational.py \
	counting/test_spark_cluster.py evaluation/test_plots.py evaluation/test_releases.py evaluation/test_sd2011.py \
	evaluation/test_stacked.py measures/test_baselines_simulated.py policy/test_beyond.py policy/test_guards.py \
	policy/test_waivers.py) \
	--deselect tests/evaluation/test_bands.py::test_at_most_one_of_a_thousand_honest_tables_is_refused
CORE := tests/measures tests/tables tests/policy tests/evaluation tests/counting $(LEFT_OUT)
find_python = $(shell for python in python$(1) "$$(pyenv root 2>/dev/null)"/versions/$(1).*/bin/python; do \
	"$$python" -c 'import ensurepip, sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(1)")' 2>/dev/null && \
	{ echo "$$python"; break; }; done)

suite-lowest suite-newest: suite-%: build/%/ready
	env --unset CI QUICK_TESTS=1 build/$*/bin/python -m pytest --numprocesses 2 --dist worksteal $(CORE)

# Whether there is such a Python.
python-lowest:
	@test -n "$(call find_python,$(LOWEST))" || { echo "There is no Python $(LOWEST)."; false; }
python-newest:
	@test -n "$(call find_python,$(NEWEST))" || { echo "There is no Python $(NEWEST)."; false; }

# What the code says of itself, written into the documents anew, and the gallery's pictures.
reference: $(READY)
	$(BIN)/python docs/extensions/generated.py

# The documentation as a site, built without a network; every warning is an error.
docs: $(DOCS_READY)
	$(BIN)/python -m sphinx -b html -W --keep-going -n -q docs build/docs -E
	@echo "The documentation: build/docs/index.html"

# The wheel and the source distribution.
dist: $(READY)
	$(BIN)/python -m hatchling build -d dist

# Small faults in a copy of the code, and which of them no test notices.
MINUTES ?= 20
mutants: $(READY)
	PYTHONPATH=tests $(BIN)/python tests/mutants.py --minutes $(MINUTES)

# What there is to know: modules, lines, names, words.
house: $(READY)
	@PYTHONPATH=tests $(BIN)/python tests/house.py

# Programs start in an environment as users have one.
bench: $(READY) build/ui/ready-ui
	$(BIN)/python benchmarks/run.py

# What gates make of common synthesizers, and the page about it; or of yours, beside them.
study: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -m synthesizers.study $(if $(TABLES),--tables $(TABLES)) \
		$(if $(CANDIDATES),--candidates $(CANDIDATES)) $(if $(SYNTHESIZER),--own $(SYNTHESIZER))
	$(if $(SYNTHESIZER),,PYTHONPATH=benchmarks $(BIN)/python -m synthesizers.page)

# Markers are written last, so that an interrupted set-up is taken up again. The locks name every package: nothing
# is resolved. uv fetches and unpacks many of them at once; where it cannot (it does not know what pip is told of a
# mirror), pip does. Modules are compiled when they are first used: two thirds of them never are.
INSTALL = $(BIN)/pip install --disable-pip-version-check --no-compile --no-deps
define set_up
	@test -x $(BIN)/python || { echo "Making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@{ sed -n '/^uv==/,/[^\\]$$/p' $< | $(INSTALL) --quiet --quiet --require-hashes -r /dev/stdin && \
		$(BIN)/uv pip install --python $(BIN)/python --no-deps --require-hashes -r $<; } || \
		$(INSTALL) --require-hashes -r $<
	@$(INSTALL) --quiet --no-build-isolation --editable .
	@touch $@
endef

$(VENV)/ready-demo: requirements-demo.lock pyproject.toml
	$(set_up)

build/ui/ready-ui: VENV := build/ui
$(VENV)/ready-ui build/ui/ready-ui: requirements-ui.lock pyproject.toml
	$(set_up)

$(VENV)/ready-docs: requirements-docs.lock pyproject.toml
	$(set_up)

$(READY): requirements.lock pyproject.toml
	$(set_up)

build/lowest/ready: VENV := build/lowest
build/lowest/ready: PYTHON = $(call find_python,$(LOWEST))
build/lowest/ready: requirements-lowest.lock pyproject.toml | python-lowest
	$(set_up)

build/newest/ready: VENV := build/newest
build/newest/ready: PYTHON = $(call find_python,$(NEWEST))
build/newest/ready: requirements-newest.lock pyproject.toml | python-newest
	$(set_up)

# Same versions for every supported Python; only names, versions and hashes are written. The locks of the demo and
# of the user interface are parts of the large one.
EXTRAS := --extra duckdb --extra fast --extra ibis --extra openlineage --extra prediction --extra s3 --extra slack \
	--extra spark --extra sql --extra stats --extra ui
OF_CORE := --extra duckdb --extra ibis --extra prediction --extra sql --extra stats --group build --group core
WITH_HASHES := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-strip-extras --no-header \
	--no-annotate pyproject.toml
COMPILE := $(WITH_HASHES) --python-version $(LOWEST)
lock: $(READY)
	$(COMPILE) $(EXTRAS) --group dev --output-file requirements.lock
	$(COMPILE) --constraint requirements.lock --group build --output-file requirements-demo.lock
	$(COMPILE) --constraint requirements.lock --group build --extra ui --output-file requirements-ui.lock
	$(subst pyproject.toml,,$(COMPILE)) --constraint requirements.lock --group build --group docs \
		--output-file requirements-docs.lock
	$(COMPILE) --resolution lowest-direct $(OF_CORE) --output-file requirements-lowest.lock
	$(WITH_HASHES) --python-version $(NEWEST) $(OF_CORE) --output-file requirements-newest.lock
