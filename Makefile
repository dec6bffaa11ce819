# `make` lists the targets. Every target builds what it needs first.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Without what only development needs: a tenth of the size, and of the time.
BASE := $(VENV)/.base

.PHONY: help demo setup environment test collect coverage check lint types wheel peers recordings docs site bench conformance hostlab hosts restarts alarms fuzz keys soak torture telemetry release clean

help:
	@echo "make demo        set up, record a sample session and show it"
	@echo "make test        set up, including the peers, and run all tests"
	@echo "make check       everything that CI runs: test, lint, types, site, wheel"
	@echo "make coverage    run all tests, and list the lines of mcpspy that none of them runs"
	@echo "make recordings  record the sessions in recordings/ again"
	@echo "make docs        generate the help in docs/ and the manual page"
	@echo "make site        build the documentation site in build/site; dead links are errors"
	@echo "make fuzz        run atheris for half an hour; FUZZ_SECONDS=3600: one hour per target"
	@echo "make keys        send 20,000 random keys, clicks and resizes to the terminal UI"
	@echo "make soak        run half an hour of load, kills, full disks and faults; SOAK_MINUTES=2: two minutes"
	@echo "make hostlab     measure what real hosts show their models (Linux; about 15 minutes); HOSTS=codex: one host"
	@echo "make hosts       run real hosts with and without mcpspy, and compare (Linux; three minutes); HOSTS=codex: one host"
	@echo "make restarts    run Claude Code and three SDK clients over 20 restarts of their server (Linux; eight minutes)"
	@echo "make alarms      compare unchanged real servers with their lockfile, about ten minutes (docs/trust.md)"
	@echo "make torture     fail system calls of mcpspy run on its recording, one after the other (Linux, a C compiler; ten minutes)"
	@echo "make telemetry   kill and slow a collector for five minutes under load; SECONDS=60: one minute"
	@echo "make conformance run MCP's conformance suite direct, through mcpspy http, and on mcpspy mcp, about ten minutes"
	@echo "make release     make all artefacts of a release in dist/; URL=…: the folder they will be downloaded from"
	@echo "make bench       run the benchmarks beside other tools, about 40 minutes (docs/benchmarks.md)"

demo: $(or $(wildcard $(INSTALLED)),$(BASE))
	$(BIN)/mcpspy demo

# The environment and the peers at once: each waits for its registry, or uses one core. So do the checks without tests.
# Nothing is run beside the tests: they have bounds of time.
setup:
	@$(MAKE) --no-print-directory --jobs=2 AT_ONCE=yes environment peers

environment: $(INSTALLED)
	@:

ifndef AT_ONCE
.NOTPARALLEL:
endif

test: setup
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# Python compiles each test when it is first imported, in 36 s of CPU time, and each process of pytest-xdist imports all
# of them: in `check`, one process does so before.
collect: $(INSTALLED)
	@mkdir -p build
	$(BIN)/python -m pytest --collect-only -qq >build/collected.txt || (cat build/collected.txt; exit 1)

# All tests once more, slower; the tests of imports fail, because coverage imports more than mcpspy does.
coverage: setup
	-$(BIN)/python tests/line_coverage.py
	$(BIN)/python tests/line_coverage.py --report

# The fast checks come first, two at once. Those that need no peers run while the peers' registries answer.
check:
	@$(MAKE) --no-print-directory --jobs=2 AT_ONCE=yes environment peers collect site wheel types lint
	@$(MAKE) --no-print-directory test

# JavaScript: each file, and the script of each page as a whole, in which every name must be declared and used.
BIOME ?= .peers/node_modules/.bin/biome
lint: $(INSTALLED) peers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/python -m tests.page_scripts build/pages
	$(BIOME) ci --error-on-warnings

# The module that imports the MCP SDK is also checked in the environment that has it, which lacks types of others.
types: $(INSTALLED) peers
	$(BIN)/mypy
	$(BIN)/mypy --python-executable .peers/mcp2/bin/python --cache-dir .mypy_cache/peers --follow-imports silent \
		mcpspy/ui/agent/mcp_server.py

# The wheel alone, in an environment that has nothing else: what a user gets.
wheel: $(INSTALLED)
	$(BIN)/python tests/wheel.py

peers:
	sh tests/peers/install.sh $(PYTHON)

recordings: $(INSTALLED) peers
	$(BIN)/python recordings/make.py

bench: $(INSTALLED) peers
	sh bench/rivals.sh $(PYTHON)
	$(BIN)/python bench/all.py --page

# The public conformance suite of MCP; SERVER='COMMAND {port}' or CLIENT=COMMAND: those of another SDK.
conformance: $(INSTALLED) peers
	$(BIN)/python -m tests.e2e.conformance $(if $(SERVER),--server '$(SERVER)') $(if $(CLIENT),--client '$(CLIENT)')
	$(BIN)/python -m tests.e2e.conformance --agent

# Real hosts from npm, offline, with a scripted model: what they do with a server's tools and results. A new version of a
# host: change it in hostlab/package.json. The install scripts put programs in place, and nothing else.
HOSTS ?=
hostlab: .hosts/installed
	$(BIN)/python -m hostlab.run $(HOSTS)

# The same hosts, with and without mcpspy: the table of docs/hosts.md. Once for each release.
hosts: .hosts/installed peers
	$(BIN)/python -m hostlab.wrapped $(HOSTS)

# Claude Code and three SDK clients over 20 restarts of their server: the table of docs/restart.md.
restarts: .hosts/installed peers
	$(BIN)/python -m hostlab.restarts

.hosts/installed: $(INSTALLED) hostlab/package.json
	mkdir -p .hosts
	cp hostlab/package.json .hosts/
	cd .hosts && npm install --silent --no-audit --no-fund --no-package-lock
	node .hosts/node_modules/@anthropic-ai/claude-code/install.cjs
	@touch $@

# Real servers that have not changed, compared with their lockfile: the table of docs/trust.md.
alarms: $(INSTALLED) peers
	$(BIN)/python bench/trust_listings.py

# Linux only: atheris has no wheels for others.
FUZZ_SECONDS ?= 60
TARGETS ?= framing recording strictness reading filtering requests responses exchanges machine redaction trust lockfile orders \
	scripts mock imports tables lint views lake_filter page_filter
fuzz: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fuzz]'
	for target in $(TARGETS); do $(BIN)/python -m fuzz.run $$target $(FUZZ_SECONDS) || exit; done

# Random keys, clicks and resizes in the terminal UI, ten times as many as in the tests.
keys: $(INSTALLED)
	MCPSPY_RANDOM_EVENTS=20000 $(BIN)/python -m pytest tests/ui/tui/test_random_events.py -n auto

# Linux only: it reads /proc.
SOAK_MINUTES ?= 30
soak: $(INSTALLED) peers
	$(BIN)/python bench/soak.py --minutes $(SOAK_MINUTES)

# Linux only, and it needs a C compiler.
torture: $(INSTALLED)
	$(BIN)/python bench/torture.py

# Linux only, like the soak test.
SECONDS ?= 300
telemetry: $(INSTALLED)
	$(BIN)/python bench/telemetry.py --seconds $(SECONDS)
	$(BIN)/python bench/telemetry.py --seconds $(SECONDS) --protocol grpc

docs: $(INSTALLED)
	$(BIN)/python docs/make.py

# Sdist, wheel, executable, packages of it (CycloneDX), Homebrew formula, Scoop manifest, notes, checksums.
URL ?= https://github.com/mcpspy/mcpspy/releases/latest/download
release:
	$(PYTHON) -m venv .release
	.release/bin/python -m pip install --quiet --disable-pip-version-check --requirement release/requirements.txt
	.release/bin/python release/make.py --url $(URL)

# A dead link or anchor is a warning, and a warning is an error.
site: $(INSTALLED)
	$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --builder html --conf-dir docs . build/site
	@echo "build/site/index.html"

clean:
	rm -rf $(VENV) .peers .release .fuzz dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Modules are compiled when they are imported: most of the packages' never are.
define install
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mcpspy needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + " (make demo PYTHON=python3.11)")'
$(PYTHON) -m venv $(VENV)
$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt pip
$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '$(1)'
@touch $@
endef

$(BASE): pyproject.toml constraints.txt
	$(call install,.)

$(INSTALLED): pyproject.toml constraints.txt
	$(call install,.[dev])
