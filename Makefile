# Commands for development. Each target sets up what it needs. You need Python 3.11, git and make.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.ready

# Tests of the built bundle, of containers, of a Kubernetes node, of real servers, in a browser.
BEYOND := tests/browser tests/bundle tests/containers tests/node tests/real
# Those of real servers that need the bundle. The others play the controllers, so they do not run beside a node.
BUNDLED := tests/real/test_idempotence.py tests/real/test_ssh.py tests/real/test_storage_fuse.py
# The order is that of the files: in a random one, all servers run all the time.
SERVERS := $(VENV)/bin/python -m pytest -p no:randomly
BROWSER := $(VENV)/.browser
# One more than the cores, because many tests wait for programs.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 8 ? n + 1 : 8)))

# IMAGE_OPTIONS: further options of buildah, such as a cache folder and authorities (docs/image.md).
IMAGE ?= localhost/pairun:dev
SITE ?= build/site
RELEASE ?= build/release
PLATFORMS ?= linux/amd64,linux/arm64

.PHONY: run test test-beyond test-slow test-real test-containers test-node test-all nightly fuzz soak incidents bench bundle image docs release lint lock clean

run: $(STAMP) ## run a job of two roles on this machine
	$(VENV)/bin/pairun run examples/two-roles.yaml

test: $(STAMP) ## run the tests that need only Python and this kernel, on every core
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(BEYOND:%=--ignore=%)

test-beyond: test-slow test-real test-containers test-node ## run the other tests (root on Debian 12)

test-slow: $(STAMP) ## run the slow tests that need only Python and this kernel
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m slow $(BEYOND:%=--ignore=%)

test-real: $(STAMP) ## test with real servers that need no bundle
	$(SERVERS) tests/real $(BUNDLED:%=--ignore=%)

test-containers: $(STAMP) $(BROWSER) ## test a browser, the bundle, containers, and with real servers what needs the bundle
	$(SERVERS) $(filter-out tests/real tests/node,$(BEYOND)) $(BUNDLED)

test-node: $(STAMP) ## test on a Kubernetes node
	$(SERVERS) tests/node

test-all: bundle test test-beyond ## run every test

nightly: export PAIRUN_TEST_EFFORT ?= 20
nightly: export PYTEST_ADDOPTS ?= -o faulthandler_timeout=5400
nightly: bundle test test-beyond ## run every test, with more random examples and seeds (also needs qemu-user-static)

fuzz: export PYTHONPATH := $(CURDIR)
fuzz: $(STAMP) ## try hostile inputs for hours (FUZZ="--hours 8 --seed 1"); write failures to build/fuzz
	$(VENV)/bin/python -m tests.attack.fuzz $(FUZZ)

soak: export PAIRUN_SOAK_MINUTES ?= 60
soak: $(STAMP) ## run a job for an hour: memory and descriptors stay the same
	$(VENV)/bin/python -m pytest -s -o faulthandler_timeout=0 tests/attack/soak

incidents: $(STAMP) ## run failing jobs of torch, JAX, MPI and Ray, and record their output (root; see tests/incidents/README.md)
	$(VENV)/bin/python -m tests.incidents $(INCIDENTS)

bench: $(STAMP) $(BROWSER) ## measure, and compare with ansible-core and pyinfra, which it installs (BENCH="--only tasks")
	$(VENV)/bin/python -m benchmarks $(BENCH)

bundle: ## build build/bundle/runtime, the runtime phase for any image (root on Debian 12; see docs/bundle.md); ARCH=arm64 for arm64
	bundle/build.sh $(ARCH:%=--arch %)
	bundle/rclone.sh $(ARCH:%=--arch %)

docs: $(STAMP) ## build the documentation site in build/site; a dead link is an error
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -B -m mkdocs build --strict --config-file mkdocs.yml --site-dir "$(abspath $(SITE))"

image: ## build the image for amd64 and arm64, and their index (buildah; IMAGE names it)
	buildah build --layers --format docker --timestamp 1700000000 --platform $(PLATFORMS) \
	  --build-arg BUILDPLATFORM=linux/$$(dpkg --print-architecture) --manifest $(IMAGE) $(IMAGE_OPTIONS) .

release: export PLATFORMS := $(PLATFORMS)
release: export IMAGE_OPTIONS := $(IMAGE_OPTIONS)
release: $(STAMP) ## write wheel, source, image, site, bill of materials and checksums to build/release (root on Debian 12)
	PYTHON="$(abspath $(VENV))/bin/python" image/release.sh "$(RELEASE)"

lint: $(STAMP) ## check format, lint and types
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

$(STAMP): requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "pairun needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(BROWSER): requirements-browser.lock $(STAMP)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-browser.lock
	touch $@

lock: ## renew the locks from pyproject.toml (needs uv)
	uv pip compile -q --universal --generate-hashes --python-version 3.11 pyproject.toml -o requirements.lock
	uv pip compile -q --universal --generate-hashes --python-version 3.11 --extra dev pyproject.toml -o requirements-dev.lock
	echo hatchling==1.27.0 | uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-header - -o requirements-build.lock
	printf 'playwright\naxe-playwright-python\n' | uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-header - -o requirements-browser.lock
	printf 'ansible-core\npyinfra>=3,<4\n' | uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-header - -o requirements-bench.lock

clean:
	rm -rf $(VENV) pairun-run .mypy_cache .ruff_cache .pytest_cache .hypothesis
