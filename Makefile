# Everything runs from .venv, which these targets make by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A directory on the path: every program starts a third faster than with a finder of setuptools.
EDITABLE := --quiet --disable-pip-version-check --no-deps --config-settings editable_mode=compat --editable .
PREFIX ?= /usr/local
DESTDIR ?=
DEMO_DIR ?= $(CURDIR)/.local-cluster
# Tests of one file share what they set up, so files are what runs side by side. More than two
# processors have work for: most tests of daemons and of time-outs wait.
SIDE_BY_SIDE := --side-by-side 6

.DEFAULT_GOAL := help
.PHONY: help demo demo-stop check test test-unit test-crash lint types imports bench clean install uninstall wheel dist deb docs site test-mutants test-partition test-api test-attack check-hosts check-burnin check-fencing check-servers check-htools check-backup check-images check-upgrade check-monitoring check-contract check-pythons check-renewal check-ui types-ui check-recovery check-helper check-moves check-etcd check-pacemaker check-leases

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(VENV)/run.stamp: requirements.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m pip install $(EDITABLE) --no-build-isolation 2>/dev/null || $(BIN)/python -m pip install $(EDITABLE)
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

demo: $(VENV)/run.stamp ## a three-node cluster with a virtual machine on it, step by step
	@tools/demo "$(DEMO_DIR)"

demo-stop: ## end the demo cluster and remove it
	@tools/local-cluster destroy --dir "$(DEMO_DIR)"

check: $(VENV)/dev.stamp ## everything that must hold before a change lands, side by side
	@$(MAKE) --no-print-directory --keep-going -j 4 lint types imports test

test: $(VENV)/dev.stamp ## all tests, six files at a time; TESTS=... for some of them
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(TESTS)

test-unit: $(VENV)/dev.stamp ## tests of single modules
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) test/unit

test-crash: $(VENV)/dev.stamp ## kill daemons at every place where they write or call (a quarter of an hour)
	@CRASH_POINTS=$(or $(CRASH_POINTS),all) $(BIN)/python -m pytest test/crash $(wildcard test/property/test_*_deaths.py)

test-partition: $(VENV)/dev.stamp ## cut off, freeze and kill masters, 50 random schedules (root; ten minutes)
	@PARTITION_SCHEDULES=50 PARTITION_CLUSTERS=4 AUTO_FAILOVER=all $(BIN)/python -m pytest test/partition

check-pythons: ## all tests with each Python from 3.11 to 3.13 that is on this machine; TESTS=... for some
	@tools/check-pythons $(TESTS)

check-hosts: $(VENV)/dev.stamp ## scenarios on emulated hosts with real LVM, DRBD, KVM and Xen (root; a quarter of an hour)
	@$(BIN)/python -m pytest --side-by-side 3 test/hosts

check-burnin: $(VENV)/dev.stamp ## burnin of twenty KVM instances on emulated hosts, on LVM and on DRBD (root; an hour); BURNIN_INSTANCES=...
	@$(BIN)/python -m pytest -s test/hosts/test_hosts_burnin.py

check-fencing: $(VENV)/dev.stamp ## recovery by itself on emulated hosts with watchdogs and IPMI: power, network, hangs, the master (root; half an hour)
	@$(BIN)/python -m pytest -s test/hosts/test_hosts_recovery.py

check-servers: $(VENV)/dev.stamp ## emulated servers: bare Debian to guests, power cut, upgrade, takeover (root; an hour and a half)
	@$(BIN)/python -m pytest -s test/servers

test-api: $(VENV)/dev.stamp ## random requests to the remote API from its OpenAPI document (ten minutes)
	@RANDOM_REQUESTS_SECONDS=$(or $(SECONDS),600) $(BIN)/python -m pytest --timeout 3000 -s test/cluster/test_cluster_rapi_random.py

test-attack: $(VENV)/dev.stamp ## attacks on a cluster on loopback, a line for each (a quarter of an hour)
	@ATTACK=1 $(BIN)/python -m pytest $(or $(ATTACKS),test/attack)

test-mutants: $(VENV)/dev.stamp ## which defects put in by hand no test notices; MUTANTS="MODULE [TEST...]"
	@$(BIN)/python test/support/mutants.py $(MUTANTS)

lint: $(VENV)/dev.stamp ## style and format (ruff)
	@$(BIN)/ruff check . && $(BIN)/ruff format --quiet --diff .

types: $(VENV)/dev.stamp ## types (mypy --strict)
	@$(BIN)/mypy

imports: $(VENV)/dev.stamp ## floors of the architecture (import-linter)
	@$(BIN)/lint-imports

check-contract: $(VENV)/dev.stamp ## how much of Ganeti's interfaces is there, item by item (a minute)
	@$(BIN)/python -m pytest -p contract_report test/contract/interface test/cluster/test_cluster_contract.py test/unit/ops/test_op_verify*.py

check-placement: $(VENV)/dev.stamp ## balancing, maintenance and capacity with twenty guests on five nodes (a minute)
	@PLACEMENT=1 $(BIN)/python -m pytest test/placement

check-renewal: $(VENV)/dev.stamp ## replace certificates of five nodes under load, and with kills at each step (ten minutes)
	@RENEWAL=1 CRASH_NODES=5 CRASH_POINTS=$(or $(CRASH_POINTS),all) $(BIN)/python -m pytest -s test/renewal test/crash/test_crypto_steps.py

check-recovery: $(VENV)/dev.stamp ## 100,000 random schedules of faults over simulated clusters (SCHEDULES=...; DECIDERS=witness, or store: a store like etcd decides; ten minutes)
	@$(BIN)/python test/recovery/run_schedules.py $(or $(SCHEDULES),100000) $(DECIDERS)

check-etcd: $(VENV)/dev.stamp ## 50 random schedules of faults where three members of etcd decide about the master (root; two hours); ETCD_SCHEDULES=... ETCD_CLUSTERS=...
	@ETCD_SCHEDULES=$(or $(ETCD_SCHEDULES),50) ETCD_CLUSTERS=$(or $(ETCD_CLUSTERS),2) $(BIN)/python -m pytest -s test/partition/test_etcd_schedules.py

check-leases: $(VENV)/dev.stamp ## 200 random schedules of cut off, frozen and killed nodes with leases, fence devices and guests (root; two hours); LEASE_SCHEDULES=... LEASE_SEED=... LEASE_CLUSTERS=...
	@LEASE_SCHEDULES=$(or $(LEASE_SCHEDULES),200) LEASE_CLUSTERS=$(or $(LEASE_CLUSTERS),4) $(BIN)/python -m pytest -s test/partition/test_lease_schedules.py

check-pacemaker: $(VENV)/dev.stamp ## resource agents under a real Pacemaker on three nodes, and 20 random faults (root; a quarter of an hour; Debian's packages pacemaker, pcs, libxml2-utils); PACEMAKER_FAULTS=... PACEMAKER_SEED=...
	@PACEMAKER_FAULTS=$(or $(PACEMAKER_FAULTS),20) $(BIN)/python -m pytest -s test/partition/test_pacemaker.py

check-upgrade: $(VENV)/dev.stamp ## two versions side by side: up, down, kills at each step (five minutes)
	@UPGRADE=1 $(BIN)/python -m pytest --timeout 900 test/upgrade

check-images: $(VENV)/dev.stamp ## an image of Debian packages, an instance of it, and a login (ten minutes)
	@IMAGES=1 $(BIN)/python -m pytest -s --timeout 3600 test/images

check-helper: $(VENV)/dev.stamp ## an OS installed and free space zeroed by a Linux in helper guests, which asks ganeti-metad (root; five minutes)
	@HELPER=1 $(BIN)/python -m pytest -s --timeout 900 test/helper

check-moves: $(VENV)/dev.stamp ## 100 guests moved live with their disks and 100 converted, cut at random moments (half an hour); MOVES=... MOVES_SEED=...
	@MOVES=$(or $(MOVES),100) $(BIN)/python -m pytest -s test/cluster/test_cluster_live_moves.py test/cluster/test_cluster_live_conversions.py

check-backup: $(VENV)/dev.stamp ## 200 random schedules of writes, crashes, migrations and backups, kills and faults of repositories (three quarters of an hour); BACKUP_SCHEDULES=... BACKUP_PROGRAM=restic|borg BACKUP_STEPS=all
	@BACKUP_SCHEDULES=$(or $(BACKUP_SCHEDULES),200) $(BIN)/python -m pytest -s --timeout 600 test/backup

check-monitoring: $(VENV)/dev.stamp ## each alert rule fires and clears, and Prometheus finds what dashboards show (two minutes; Debian's package prometheus)
	@command -v promtool >/dev/null || { echo "promtool is missing; install it: apt-get install --no-install-recommends prometheus" >&2; exit 1; }
	@promtool check rules doc/monitoring/alerts.yml && cd test/monitoring && promtool test rules alerts_test.yml
	@MONITORING=1 $(BIN)/python -m pytest --timeout 600 test/cluster/test_cluster_prometheus.py

$(VENV)/ui.stamp: requirements-ui.txt $(VENV)/dev.stamp
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-ui.txt
	@touch $@

check-ui: $(VENV)/ui.stamp ## the web interface in Debian's Chromium, on a local cluster with a guest (three minutes)
	@UI=1 $(BIN)/python -m pytest -s --timeout 900 test/ui

types-ui: $(VENV)/ui.stamp ## types of the web interface (TypeScript, from npm), against the OpenAPI document
	@UI=1 $(BIN)/python -m pytest -s test/ui/test_ui_types.py

check-htools: $(VENV)/dev.stamp ## compare hbal, hspace, hcheck and hroller with Debian's (package ganeti-htools)
	@$(BIN)/python test/perf/compare_htools.py $(CASES)

bench: $(VENV)/run.stamp ## figures as JSON on standard output
	@$(BIN)/python test/perf/bench.py

clean: ## remove everything that was made
	@tools/local-cluster destroy --dir "$(DEMO_DIR)" >/dev/null 2>&1 || true
	@rm -rf $(VENV) build dist test/ui/types/node_modules *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

install: ## install everything for a server below PREFIX and in /etc (DESTDIR is honoured)
	@tools/install "$(PYTHON)" "$(PREFIX)" "$(DESTDIR)"
	@tools/install-system "$(PREFIX)" "$(DESTDIR)"

uninstall: ## remove what make install has made; /etc and data stay
	@tools/uninstall "$(PREFIX)" "$(DESTDIR)"

docs: $(VENV)/run.stamp ## reference and man pages from the code
	@tools/make-docs

$(VENV)/site.stamp: requirements-site.txt $(VENV)/run.stamp
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-site.txt
	@touch $@

site: $(VENV)/site.stamp ## doc/ as a web site with search in build/site
	@tools/make-site $(BIN)/python

wheel: $(VENV)/run.stamp ## wheel with the programs in dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

dist: $(VENV)/run.stamp ## source archive and wheel in dist/
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	@$(BIN)/python -m build --outdir dist .

deb: ## packages for this release of Debian in dist/ (needs debhelper, python3-venv, python3-pip)
	@tools/make-deb
