# Everything from a bare clone with Python 3.11+, make and pip.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
TSC := .typescript/node_modules/.bin/tsc

# The suite starts hundreds of daemons and commands, as users do. Where this is set, as in many containers, each of
# them compiles the whole package again: a daemon starts three times as slowly.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all check coverage bench faults posix venv clean
FAMILIES := core agents browsers docs faults frameworks processes pythons servers breadth

demo: $(VENV)/.ready
	@$(RUN) -m meantime.app.demo

# What an ordinary change breaks, with PyPI's packages alone. Three at once, even on two cores: much of it waits.
test: $(VENV)/.test
	$(RUN) -m pytest -q -n 3 --dist loadgroup --family core --durations 20

# All of it; `make test-all FAMILIES="browsers servers"` runs these families alone (tests/selection.py says what each
# has). A family has the programs of others that it needs installed first. Four at once: more of it waits.
NEEDS_agents := .agents/.ready
NEEDS_browsers := .browsers/.ready
NEEDS_docs := .agents/.ready .typescript/.ready
NEEDS_faults := strace faketime postgres .agents/.ready .frameworks/.ready
NEEDS_frameworks := .frameworks/.ready .typescript/.ready
NEEDS_pythons := .systemd/.ready .container/.ready
NEEDS_servers := postgres .foreign/.ready .servers/.ready .sdk/.ready
test-all: $(VENV)/.dev $(foreach family,$(FAMILIES),$(NEEDS_$(family)))
	$(RUN) -m pytest -q -n 4 --dist loadgroup $(FAMILIES:%=--family=%)

# Commands, runtime, daemon, command line and agents with the POSIX path, on a Linux that refuses what only Linux
# has; then the hostile process trees, which are counted and do not fail it. The table is in
# docs/reference/tested-versions.md. `make posix TESTS="tests/shell trees"` runs only these.
posix: $(VENV)/.dev
	$(RUN) tools/run_posix_suites.py $(TESTS)

check: $(VENV)/.dev .typescript/.ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright
	$(VENV)/bin/lint-imports
	$(RUN) tools/check_prose.py
	$(if $(wildcard $(TSC)),$(TSC) -p tests/surfaces/dashboard,@echo "no TypeScript: the dashboard's types are not checked")

# Branch coverage of the packages that hold the promises (pyproject.toml names them), with its floor for
# branches alone. It takes a while.
DAMAGE := salvage unreadable wal_damage gone failed_sync full_disk files older_copy row_checksums
COVERED := tests/kernel tests/ports tests/conformance tests/toolset tests/fundamentals tests/seeds tests/runtime tests/agents \
	tests/plugins tests/link tests/client tests/shell tests/app tests/integrations/loops \
	tests/integrations/test_provider_errors.py tests/surfaces/http/test_writing.py \
	tests/surfaces/http/test_turns.py tests/workers/test_placed_work.py tests/workers/test_restarts.py \
	$(DAMAGE:%=tests/faults/test_%.py)
coverage: $(VENV)/.dev
	$(RUN) -m coverage erase
	$(RUN) -m coverage run -m pytest -q --family core --family breadth --family faults $(COVERED)
	$(RUN) -m coverage report
	$(RUN) -m coverage json -q -o .coverage.json
	$(RUN) tools/check_branches.py .coverage.json

# `make faults FAMILIES="link power"` plays only these; `.venv/bin/python -m tests.faults.run --help` lists them.
# `make faults REPORT=docs/internals/reliability.json` writes what it found there, family by family.
# `make faults LONG=1` is a soak of an hour (MINUTES=60) in the folder SOAK=.soak. Stopped, it goes on when it is
# started again.
faults: $(VENV)/.dev strace faketime $(if $(FAMILIES),$(if $(filter adapters,$(FAMILIES)),.frameworks/.ready),.frameworks/.ready)
	$(RUN) -m $(if $(LONG),tests.faults.soak --minutes $(or $(MINUTES),60) --folder $(or $(SOAK),.soak) $(if \
	$(REPORT),--report $(REPORT)),tests.faults.run $(FAMILIES) $(if $(REPORT),--report $(REPORT)))

# `make bench NAMES="scaling history"` runs only these; `make bench NAMES=scaling MOST=1000000` goes further.
# `make bench NAMES=adapters ROWS="langchain openai_agents"` measures only these frameworks.
# `make bench NAMES=task_cost AGAINST=../before` compares the CPU of a task with that of another checkout.
# `make bench NAMES=memory MOST=1000000` looks for growth over a million tasks.
# `make bench CHECK=1` names the ratios that became more than 15 % worse than in the recorded run; RECORD=1 records.
# `make bench NAMES=peers ROWS="huey DBOS"` measures only these peers beside Meantime.
# `make bench NAMES=crash_matrix ROWS="Mastra Strands" ROUNDS=5` plays only these rows of the crash matrix.
bench: $(VENV)/.dev $(if $(NAMES)$(CHECK)$(RECORD),,command-queues strace) \
	$(if $(NAMES),$(if $(filter workers peers,$(NAMES)),peers),peers) \
	$(if $(NAMES)$(CHECK)$(RECORD),$(if $(filter crash_matrix,$(NAMES)),crash-peers),crash-peers) \
	$(if $(filter adapters,$(NAMES)),.frameworks/.ready)
	MOST=$(MOST) MINUTES=$(MINUTES) ROWS="$(ROWS)" ROUNDS=$(ROUNDS) AGAINST=$(AGAINST) CHECK=$(CHECK) RECORD=$(RECORD) $(RUN) -m benchmarks $(NAMES)

venv: $(VENV)/.dev

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The package with its server; with what `make test` needs; with everything for development.
$(VENV)/.ready: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install -q -e '.[server]'
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install -q -e '.[test]'
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install -q -e '.[dev]'
	touch $@

# Real agents, pinned in one file and kept in .agents. Without npm their tests are skipped, but not where CI=true.
.agents/.ready: tests/integrations/agents/package.json
	@tests/integrations/agents/install pinned

.PHONY: agents agents-newest
agents: .agents/.ready

# The same tests with npm's newest agents, as a report: what has changed there is not a failure of ours. The
# table in docs/guides/coding-agents.md is written from it.
NEWEST := .agents-newest
agents-newest: $(VENV)/.dev
	@tests/integrations/agents/install newest
	-MEANTIME_AGENTS=$(NEWEST) MEANTIME_AGENTS_REPORT=$(NEWEST)/report.json \
	$(RUN) -m pytest -q -n 3 --dist loadgroup tests/integrations/agents
	$(RUN) tools/write_agent_versions.py $(NEWEST)/report.json

# A compiler for the dashboard's page, which `make check` runs, and a generator for the TypeScript client of the
# HTTP API. Where npm is missing both are skipped, but not where CI=true.
.typescript/.ready: tests/integrations/typescript/package.json
	@tests/integrations/typescript/install

.PHONY: typescript
typescript: .typescript/.ready

# Browsers for the tests of the dashboard: Debian's Chromium and Firefox ESR, where they can be installed, and
# axe-core from npm. Where they are missing its tests are skipped, but not where CI=true.
.browsers/.ready: tests/surfaces/dashboard/package.json
	@tests/surfaces/dashboard/install

.PHONY: browsers
browsers: .browsers/.ready

# MCP programs of another make, in an environment of their own. Where they cannot be installed their tests
# are skipped, but not where CI=true.
.foreign/.ready: tests/integrations/mcp/foreign.txt
	@PYTHON=$(PYTHON) tests/integrations/mcp/install

# Unmodified MCP servers from npm and PyPI, which the tests of the wrap ask with and without it. Where they cannot
# be installed these tests are skipped, but not where CI=true.
.servers/.ready: tests/surfaces/wrap/servers/package.json tests/surfaces/wrap/servers/requirements.txt
	@PYTHON=$(PYTHON) tests/surfaces/wrap/servers/install

.PHONY: servers
servers: .servers/.ready

# The MCP SDK with the tests of its source distribution, which run against servers with and without the wrap. Where
# they cannot be installed they are skipped, but not where CI=true.
.sdk/.ready: tests/surfaces/wrap/sdk/requirements.txt
	@PYTHON=$(PYTHON) tests/surfaces/wrap/sdk/install

.PHONY: sdk
sdk: .sdk/.ready

# Agent frameworks, in an environment of their own. Where they cannot be installed their tests are skipped, but
# not where CI=true. `make frameworks` installs them; tests/integrations/test_frameworks.py runs their tests.
.frameworks/.ready: tests/frameworks/frameworks.txt
	@PYTHON=$(PYTHON) tests/frameworks/install

.PHONY: frameworks
frameworks: .frameworks/.ready

# The fault suite injects errors with strace: a Debian package, installed where that is allowed.
.PHONY: strace
strace:
	@command -v strace >/dev/null || { command -v apt-get >/dev/null && apt-get update -q && apt-get install -qy strace; } || \
	echo "strace is missing: the system-call faults are skipped"

# And it turns the clock of a daemon with libfaketime, installed in the same way.
.PHONY: faketime
faketime:
	@ls /usr/lib*/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || { command -v apt-get >/dev/null && apt-get update -q && apt-get install -qy libfaketime; } || \
	echo "libfaketime is missing: jumps of a daemon's clock are skipped"

# The carrier on PostgreSQL is tested with Debian's server, installed in the same way. Without it its tests are
# skipped, but not where CI=true.
.PHONY: postgres
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { command -v apt-get >/dev/null && apt-get update -q && apt-get install -qy postgresql; } || \
	echo "PostgreSQL is missing: its carrier is not tested"

# The core of the suite on every Python that is found here, or that a newer Debian has; the table is in
# docs/reference/tested-versions.md. `make matrix VERSIONS="3.12 3.13"` runs only these.
.PHONY: matrix
matrix: $(VENV)/.dev
	$(RUN) tools/run_python_matrix.py $(VERSIONS)

# The wheel in clean environments, with each extra; the table is in docs/reference/tested-versions.md. It downloads much.
.PHONY: wheel
wheel: $(VENV)/.dev
	$(RUN) tools/check_wheel.py $(EXTRAS)

# A small Debian in which a real systemd runs the daemon. Where it cannot be made, its test is skipped.
.systemd/.ready: tests/daemon/systemd/install
	@tests/daemon/systemd/install

.PHONY: systemd
systemd: .systemd/.ready

# What the steps of the Dockerfile need to be run without Docker. Where it cannot be made, their test is skipped.
.container/.ready: Dockerfile tests/daemon/container/install $(VENV)/.dev
	@tests/daemon/container/install

.PHONY: container
container: .container/.ready

# Command queues that the benchmarks compare with, where Debian has them and that is allowed.
.PHONY: command-queues
command-queues:
	@for each in tsp:task-spooler pueue:pueue; do command -v $${each%:*} >/dev/null || { command -v apt-get >/dev/null && \
	apt-get update -q && apt-get install -qy $${each#*:}; } || echo "$${each#*:} is missing: it is not compared with"; done

# Runtimes and queues of another make that we are compared with, each in an environment of its own, with Debian's
# Redis and PostgreSQL where that is allowed. A peer that is missing is named, and not compared with.
PEERS := benchmarks/peers/environments
.peers/mastra/.ready: $(PEERS)/package.json
	@$(PEERS)/install mastra

.peers/%/.ready: $(PEERS)/%.txt
	@PYTHON=$(PYTHON) $(PEERS)/install $*

.PHONY: peers redis crash-peers
peers: redis postgres command-queues .peers/mastra/.ready \
	$(patsubst %,.peers/%/.ready,celery dbos docket dramatiq fastmcp huey procrastinate taskiq temporal)

redis:
	@command -v redis-server >/dev/null || { command -v apt-get >/dev/null && apt-get update -q && \
	apt-get install -qy --no-install-recommends redis-server; } || echo "redis-server is missing: queues on it are not compared with"

# Those of the crash matrix, and the frameworks that have an adapter.
crash-peers: redis .peers/mastra/.ready $(patsubst %,.peers/%/.ready,fastmcp harness strands) .frameworks/.ready .agents/.ready

clean:
	rm -rf $(VENV) .agents .foreign .servers .sdk .typescript .frameworks .peers .browsers .systemd .container .matrix .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage
