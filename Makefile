# `make` alone prints the targets. All that `demo` and `test` need is Python >= 3.10 and Rust; scripts/setup says what is missing.
# The tools of development are installed when a target needs them: `demo` does without.
# PYTHON=python3.12 chooses the Python that .venv is made from.

python := .venv/bin/python
extension := python/recede/_core.abi3.so
# A function, since cargo may not be there yet.
rustflags = RUSTFLAGS="$$RUSTFLAGS $$(scripts/rustflags)"
# What makes later builds faster takes a fifth of the first one.
incremental = $(if $(wildcard $(extension)),1,0)
sources := Cargo.toml pyproject.toml $(shell find src -name '*.rs')
# The build script of PyO3 asks this Python; the path must be absolute.
export PYO3_PYTHON := $(CURDIR)/$(python)
export VIRTUAL_ENV := $(CURDIR)/.venv
unexport CONDA_PREFIX
# Else each process that the tests start compiles recede again.
unexport PYTHONDONTWRITEBYTECODE
# Of `make fuzz`.
SECONDS ?= 60
# Of `make fuzz` and `make test-slow`: another one each time, so that they try what was not tried before.
SEED ?= $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
SEED := $(SEED)

.PHONY: help setup tools build release demo test lint lint-rust lint-python fmt test-rust test-python test-integrations test-engines test-slow \
	test-agents test-types test-site test-arm test-bare newcomer bench bench-integrations fuzz corpus figures prices rules dist docs clean

help: ## Print the targets
	@sed -n 's/^\([a-z-]*\):.* ## /\1\t/p' Makefile | expand -t 14

setup:
	@scripts/setup
tools: setup
	@scripts/setup dev

build: setup $(extension) ## Build the Rust core into .venv
$(extension): $(sources) .venv/.build
	@echo "Building the Rust core ..."
	@said=$$($(rustflags) CARGO_INCREMENTAL=$(incremental) PIP_QUIET=1 $(python) -m maturin develop --profile checkout --quiet 2>&1) || { echo "$$said"; exit 1; }
	@touch $@
.venv/.build: | setup ;

release: setup  # as in a wheel
	$(rustflags) PIP_QUIET=1 $(python) -m maturin develop --release --quiet

demo: build ## Reduce a recorded session (FILE=... another one) and show before and after
	@$(python) scripts/demo.py $(if $(FILE),"$(FILE)")

test: build tools ## Everything that CI runs
	@$(MAKE) --no-print-directory -j 3 lint test-rust  # while cargo waits for its lock, Python is checked
	@$(MAKE) --no-print-directory test-python

lint: lint-rust lint-python ## Formatting, lints and types, of Rust and of Python
lint-rust: setup
	@scripts/setup lint
	cargo fmt --check
	cargo clippy --quiet --all-targets --features python -- -D warnings
lint-python: build tools
	$(python) -m ruff check --quiet
	$(python) -m ruff format --check --quiet
	$(python) -m mypy
	$(python) -m mypy.stubtest recede._core

fmt: tools ## Format all code
	cargo fmt
	$(python) -m ruff check --fix --quiet
	$(python) -m ruff format --quiet

# Optimized, since an optimizer has faults as well, and with assertions. Fat LTO compiles for a minute and is left to test-slow,
# with the long loops. The jobs of make are not cargo's, which would warn of them.
test-rust: setup ## The tests of the core, without Python
	MAKEFLAGS= cargo test --quiet

test-python: build tools ## The tests of the package, but for the slow ones
	$(python) -m pytest -n 3 --dist worksteal -m "not slow"  # on two cores, since tests wait for servers and processes

test-integrations: build ## The contract of the adapters, with an environment for each framework (ONLY=langchain,... SLOW=yes)
	$(python) scripts/integrations.py $(if $(ONLY),--only $(ONLY)) $(if $(WHERE_POSSIBLE),--where-possible) $(if $(SLOW),--slow)

test-slow: build tools ## The slow tests, the core as a wheel has it, properties with random examples (SEED=... for those of another run)
	cargo test --quiet --release --test core
	$(python) -m pytest -m slow
	HYPOTHESIS_PROFILE=random $(python) -m pytest --hypothesis-seed=$(SEED) tests/property tests/differential

test-types: build tools ## A user's script under mypy and pyright, both strict
	@scripts/setup types
	$(python) -m mypy --strict tests/typing/users_script.py
	$(python) -m pyright --project tests/typing --pythonpath $(python)

test-agents: build tools ## Agents through the proxy, their own addresses, and what each costs (RECEDE_AGENTS=folder of node_modules)
	$(python) -m pytest -m slow -rP tests/integration/test_agents.py tests/integration/test_agent_addresses.py tests/integration/test_agent_costs.py tests/integration/test_verified_agents.py

test-arm: setup ## The tests of the core for aarch64, emulated (apt install qemu-user gcc-aarch64-linux-gnu)
	rustup --quiet target add aarch64-unknown-linux-gnu
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
		cargo test --quiet --target aarch64-unknown-linux-gnu --test core

# On a disk: programs cannot be run everywhere in memory.
test-bare: build tools ## The tests of recorded sessions in a clone that cannot see any
	TMPDIR=$${TMPDIR:-/tmp} $(python) -m pytest -m slow tests/integration/test_bare_clone.py

newcomer: build tools ## From a clone and an empty HOME: build the wheel, install it, type what README and the first screen say
	TMPDIR=$${TMPDIR:-/tmp} $(python) -m pytest -m slow tests/integration/test_newcomer.py

test-engines: build ## The listings of docs/corpora.md in Polars, DuckDB, Spark and Ray, shapes of datasets (ENGINES=... fewer)
	scripts/engines $(ENGINES)

bench-integrations: release ## Measure the adapters in the environments of test-integrations (ONLY=langchain,...)
	$(python) benches/adapters.py $(if $(ONLY),--only $(ONLY))

bench: release tools ## Measure what recede means to reach (QUICK=1 in a minute, WRITE=1 into benches/RESULTS.md, ONLY=... a part)
	$(python) benches/table.py $(if $(QUICK),--quick) $(if $(WRITE),--write) $(if $(ONLY),--only $(ONLY))

fuzz: build tools ## Scanner against a full parser, turn store against a list, core against oracle, readers of files (SECONDS=60 each, SEED=..., CASES=... at most)
	RECEDE_FUZZ_SECONDS=$(SECONDS) RECEDE_FUZZ_SEED=$(SEED) RECEDE_FUZZ_CASES=$(CASES) \
		cargo test --quiet --release --test core long_run -- --ignored --nocapture
	$(python) tests/fuzz.py --seconds $(SECONDS) --seed $(SEED) $(if $(CASES),--cases $(CASES))
	$(python) tests/fuzz_readers.py --seconds $(SECONDS) --seed $(SEED) $(if $(CASES),--cases $(CASES))

corpus: setup ## Fetch the recorded sessions that tests and documents measure into .corpus/ (MIRROR=folder of repositories instead of the network)
	$(python) scripts/corpus.py $(if $(MIRROR),--mirror "$(MIRROR)")

figures: $(if $(CHECK)$(filter no,$(TIMED)),build,release) tools ## Make the tables of the documents again (CHECK=1 only compares, TIMED=no without times, ONLY=kit.md,... some)
	$(python) benches/figures.py $(if $(CHECK),--check) $(if $(filter no,$(TIMED)),--not-timed) $(if $(ONLY),--only $(ONLY))

prices: build tools ## Hold the table of models against the package genai-prices, and list what differs
	$(python) scripts/prices.py

rules: build ## List the rules of providers and the prices that nobody has read again for 60 days
	@$(python) scripts/rules.py

dist: setup ## Build the source archive and the wheels for Linux into dist/, and try them (TARGETS=..., PYTHONS=... fewer)
	@scripts/setup dist
	scripts/dist

docs: build tools ## Build the site into site/; a link that leads nowhere is an error
	@scripts/setup docs
	NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --quiet --strict

test-site: docs ## Look at every page of the site in Chromium, at the width of a desk and of a phone
	$(python) -m pytest -q -m slow tests/integration/test_site.py

clean: ## Remove what was built, and .venv
	rm -rf .venv .venvs .engines target dist site $(extension)
