# Two commands on a fresh machine with Python and make: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
# One more than there are cores: tests on Flink and Ray wait more than they compute.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
INPUTS ?= 1000
SEED ?= 0
MARKED := not slow
EXAMPLES := quick
PAGE := streamplace/report/page
# What the demo runs, and what tests, checks and pages need as well.
DEMO := -e '.[learn]'
PARTS := -e '.[dev,docs,learn,torch-geometric,ray,onnx,flink]'
INSTALL := UV=$(BIN)/uv ./install.sh
# Byte code of what is imported is written once, also where the environment says not to.
PYTHON_HERE := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python

.PHONY: demo test test-all core lint versions without docs bench fuzz page jars build wheel release-rehearsal sbom clean pyflink extras

demo: $(READY) core
	@$(PYTHON_HERE) examples/demo.py demo

# Pytest rewrites every file of tests, and with byte code not in every process.
test: $(TOOLS) core
	cd core && cargo test --quiet --no-default-features
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -m "$(MARKED)" -n $(WORKERS) \
		--dist loadgroup --no-loadscope-reorder \
		--hypothesis-profile=$(EXAMPLES) --durations=40 -rsfE $(COVERAGE)

# The extension module, if its sources have changed.
core: $(READY)
	@$(BIN)/python core/build.py

# What is slow and rarely breaks as well, before a release: an hour.
test-all: MARKED :=
test-all: EXAMPLES := thorough
test-all: COVERAGE := --cov --cov-report=term --cov-fail-under=96
test-all: pyflink test lint versions without docs bench fuzz

lint: $(TOOLS) core
	cd core && cargo fmt --check && cargo clippy --quiet --all-targets -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd sim && MYPYPATH=. $(abspath $(BIN))/stubtest streamsim._core
	for file in pyproject.toml streamplace/*/room.toml; do $(BIN)/lint-imports --config $$file || exit; done

# The lowest and the newest versions of other packages, on the first and the last Python.
versions: $(TOOLS)
	@.ci/versions

# Checks and tests of copies of the tree, each without one of the optional rooms.
without: $(TOOLS) core
	$(BIN)/python .ci/without flink
	$(BIN)/python .ci/without papers

docs: $(TOOLS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(TOOLS)
	$(BIN)/pytest benchmarks --benchmark-columns=median,iqr,rounds

# Spoiled files for every reader that is registered, INPUTS of them for each.
fuzz: $(TOOLS)
	FUZZ_INPUTS=$(INPUTS) FUZZ_SEED=$(SEED) $(BIN)/pytest tests/fuzz -k spoiled -n $(WORKERS)

# The script and the style sheet of reports, from their sources; needs Node 20 and npm.
page: $(PAGE)/node_modules/.ready
	@cd $(PAGE) && npm run --silent check && npm run --silent build

# The jars of the package, from their sources; needs JDK 17 and Flink's libraries.
jars: $(READY)
	@$(PYTHON_HERE) benchmarks/flink_jars.py

$(PAGE)/node_modules/.ready: $(PAGE)/package-lock.json
	@cd $(PAGE) && npm ci --silent --no-audit --no-fund
	@touch $@

# PyFlink for the tests of Flink programs in Python, in an environment of its own (840 MB).
pyflink: $(VENV)/pyflink/.ready

$(VENV)/pyflink/.ready: $(READY)
	@$(PYTHON) -m venv $(VENV)/pyflink
	@$(INSTALL) $(VENV)/pyflink apache-flink==2.3.0
	@touch $@

# What some tests are skipped without: models of OpenVINO, device maps carried out.
extras: $(TOOLS)
	@$(INSTALL) $(VENV) -c constraints.txt openvino accelerate

# The files of a release, which PyPI would accept; no isolation, so that nothing is fetched.
build: $(TOOLS)
	@rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*

# A wheel for Linux with glibc 2.17 or newer, which zig links.
wheel: $(READY)
	STREAMPLACE_GLIBC=2.17 $(BIN)/uv build --quiet --wheel --out-dir dist

# All of a release but its publication; test-all comes before.
release-rehearsal: build
	@.ci/rehearsal

# What an installation of the wheel consists of, as CycloneDX beside it.
sbom: build
	@rm -rf dist/env && $(PYTHON) -m venv --without-pip dist/env
	$(BIN)/uv pip install --quiet --python dist/env/bin/python -c constraints.txt dist/*.whl
	$(BIN)/uv tool run --from cyclonedx-bom cyclonedx-py environment --pyproject pyproject.toml \
		--output-reproducible --validate -o dist/sbom.cdx.json dist/env/bin/python
	@rm -rf dist/env

clean:
	rm -rf $(VENV) demo dist site .coverage

$(READY): pyproject.toml constraints.txt
	@echo "Installing into $(VENV) (once; 1.5 GB with torch for CPUs)"
	@begin=$$(date +%s) && $(PYTHON) -m venv $(VENV) && \
	{ $(BIN)/pip install --quiet --disable-pip-version-check uv || true; } && \
	$(INSTALL) $(VENV) -c constraints.txt $(DEMO) && \
	echo "Installed in $$(( $$(date +%s) - begin )) s"
	@touch $@

$(TOOLS): $(READY)
	@echo "Installing what tests, checks and pages need (once; 0.9 GB)"
	@$(INSTALL) $(VENV) --compile-bytecode -c constraints.txt $(PARTS)
	@touch $@
