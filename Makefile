# Each target sets up what it needs, on a machine that has Python >= 3.10, a C compiler and make.
# Everything is installed under this folder: .venv, for `make bench` .venv-bench and .venv-mindspore, for `make bench-gpu` .venv-gpu.
#
#   make demo      train on handwritten digits          make docs    reference pages from docstrings
#   make test      what a change must pass (< 15 min)   make lint    ruff and mypy
#   make test-all  the same without shortcuts           make setup   only install
#   make bench     ratios against other frameworks      make clean   remove .venv and what was built
#   make test-gpu  the CUDA backend on a GPU            make bench-gpu  its speed there, beside PyTorch and JAX
#   make sanitize  the CPU backend's C under AddressSanitizer (gcc)
#   make fuzz N=2000 DEVICE=CPU SEED=1 LEVEL=O2    random programs, compiled against line by line

PYTHON ?= python3
# `make test` takes each device as far as the word after the colon says; `make test-all` all of them in full.
DEVICES ?= CPU:full InnerRing:quick Reference:quick Template:quick OpenCL:quick CUDA-emulated:quick
# Devices that a machine may lack: what is left out is said, and is a failure where DUOGRAPH_REQUIRE names the device.
OPTIONAL ?= OpenCL CUDA-emulated
# Processes that run the tests side by side: a number, or auto for one a core.
JOBS ?= auto
# Passed on to the program: make demo ARGS="--epochs 3", make bench ARGS="--only gpt --pairs 3"
ARGS ?=

BIN := .venv/bin
PIP_QUIET := --quiet --disable-pip-version-check
FULL := $(patsubst %:full,%,$(filter %:full,$(DEVICES)))
QUICK := $(patsubst %:quick,%,$(filter %:quick,$(DEVICES)))
CORE := $(shell find core -name '*.py')
# What the compiled module is made from: its C, and the op table whose `scalar` slots are printed as C.
NATIVE := $(shell find backend_cpu -name '*.[ch]' -o -name '*.inc' -o -name 'build.py' -o -name 'generate.py') \
          $(filter core/duograph/ops/% core/duograph/backend/codegen/%,$(CORE))
# Neighbours stay in one process, so that what is prepared for an op serves its other tests.
SIDE_BY_SIDE = -n $(JOBS) --dist worksteal
# Hundreds of tests start a process of their own, which would compile all modules again where nothing may be kept.
unexport PYTHONDONTWRITEBYTECODE
PLUGINS := $(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml))

# The folders whose tests take longest come first: what is left at the end is short, and both processes have some of it.
TESTS := backend_cuda/tests backend_opencl/tests backend_cpu/tests tests

# setuptools puts into a wheel whatever an earlier build left in build/, so wheels are built from a copy.
CLEAN_COPY = rm -rf build/clean && mkdir -p build/clean && tar -cf - --exclude=__pycache__ --exclude='*.so' \
  core backend_cpu backend_opencl backend_cuda pyproject.toml setup.py LICENSE README.md | tar -xf - -C build/clean

.PHONY: setup demo test test-all fuzz sanitize bench docs lint unit wheel-test test-gpu bench-gpu clean clean-bench
.DELETE_ON_ERROR:

setup: .venv/.plugins

demo: setup
	$(BIN)/python examples/digits.py $(ARGS)

# ---- tests -----------------------------------------------------------------------------------------

test: lint unit $(FULL:%=full-%) $(QUICK:%=quick-%)

# every kernel of every dtype, for every architecture
test-all: export DUOGRAPH_CUDA_FULL = 1
test-all: lint unit $(FULL:%=full-%) $(QUICK:%=full-%) wheel-test

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

unit: setup
	$(BIN)/pytest $(SIDE_BY_SIDE) $(TESTS)

# Why the device $* cannot be used here, where it is one that a machine may lack; else nothing.
define ABSENT
case " $(OPTIONAL) " in (*" $* "*) $(BIN)/python -c 'import os, sys; \
from duograph.backend import registry; \
required = os.environ.get("DUOGRAPH_REQUIRE", "").lower().split(","); \
problem = registry.problem_of(registry.entries()[sys.argv[1]]); \
print("" if problem is None or sys.argv[1].lower() in required else problem)' $* ;; esac
endef

full-%: setup
	@mkdir -p build
	@absent=$$($(ABSENT)); if [ -n "$$absent" ]; then echo "left out: conformance on $*: $$absent"; else \
	  set -x; $(BIN)/pytest $(SIDE_BY_SIDE) --pyargs duograph.conformance --device $* \
	    --conformance-html build/conformance-$*.html; fi

# its programs are built once in a run, and kept for later ones they take half as long again
quick-OpenCL: export DUOGRAPH_CACHE_LIMIT = 0

quick-%: setup
	@absent=$$($(ABSENT)); if [ -n "$$absent" ]; then echo "left out: conformance on $*: $$absent"; else \
	  set -x; $(BIN)/pytest $(SIDE_BY_SIDE) --pyargs duograph.conformance --device $* --quick; fi

N ?= 2000
DEVICE ?= CPU
SEED ?= 0
LEVEL ?= O0

fuzz: setup
	$(BIN)/pytest --pyargs duograph.conformance --device $(DEVICE) -k test_parity -s --fuzz $(N) --fuzz-seed $(SEED) \
	  --fuzz-level $(LEVEL)

# Blocks of memory are as large as was asked for then, and none is used again. A compiler that crashes and exceptions of C++ are not for the
# sanitizer, which every process gets that is started.
sanitize: setup
	$(CLEAN_COPY)
	cd build/clean && CFLAGS=-fsanitize=address LDFLAGS=-fsanitize=address $(abspath $(BIN))/python setup.py --quiet build_ext --inplace
	cd build/clean && export PYTHONPATH=core:backend_cpu LD_PRELOAD=$$($${CC:-gcc} -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 && \
	  $(abspath $(BIN))/pytest $(SIDE_BY_SIDE) backend_cpu/tests --ignore backend_cpu/tests/test_toolchain.py \
	    --deselect backend_cpu/tests/test_runtime.py::test_freed_blocks_are_reused \
	    --deselect backend_cpu/tests/test_runtime.py::test_small_blocks_release_their_memory && \
	  $(abspath $(BIN))/pytest $(SIDE_BY_SIDE) --pyargs duograph.conformance --device CPU --quick

# ---- on a machine with an NVIDIA GPU ---------------------------------------------------------------

define NEED_GPU
@$(BIN)/python -c 'import sys; from duograph.backend import registry; \
problem = registry.problem_of(registry.entries()["GPU"]); \
sys.exit(problem and "duograph: this needs an NVIDIA GPU, and nothing was run: " + problem)'
endef
# One tool of compute-sanitizer (it comes with the CUDA toolkit) over the forward passes of all ops.
SANITIZE = compute-sanitizer --target-processes all --error-exitcode 1 --tool

test-gpu: setup
	$(NEED_GPU)
	@mkdir -p build
	$(BIN)/pytest --pyargs duograph.conformance --device GPU --conformance-html build/conformance-GPU.html
	DUOGRAPH_CUDA_DEVICE=GPU $(BIN)/pytest backend_cuda/tests/test_kernels.py backend_cuda/tests/test_mixed_precision.py \
	  backend_cuda/tests/test_program.py
	DUOGRAPH_CUDA_DEVICE=GPU DUOGRAPH_CUDA_CUBLASLT=0 $(BIN)/pytest backend_cuda/tests/test_kernels.py
	DUOGRAPH_REQUIRE=gpu $(BIN)/pytest tests/devices -k GPU
	@command -v compute-sanitizer >/dev/null || \
	  { echo "duograph: compute-sanitizer is not installed, so memory and races were not checked" >&2; exit 1; }
	$(SANITIZE) memcheck $(BIN)/pytest --pyargs duograph.conformance --device GPU --quick -k test_forward
	$(SANITIZE) racecheck $(BIN)/pytest --pyargs duograph.conformance --device GPU --quick -k test_forward

# The order counts: without a GPU nothing of the peers is downloaded.
bench-gpu: setup
	$(NEED_GPU)
	$(MAKE) .venv-gpu/.duograph
	.venv-gpu/bin/python benchmarks/gpu.py --out build/benchmarks/gpu.md $(ARGS)

# As a user gets it: a wheel, installed away from the sources, with an outsider's plugin beside it.
wheel-test: setup
	rm -rf dist .venv-wheel
	$(PYTHON) -m venv .venv-wheel
	$(CLEAN_COPY)
	.venv-wheel/bin/pip wheel $(PIP_QUIET) --no-deps --wheel-dir dist build/clean
	.venv-wheel/bin/pip install $(PIP_QUIET) "$$(ls dist/duograph-*.whl)[conformance]"
	.venv-wheel/bin/pip install $(PIP_QUIET) ./plugins/reference
	cd .venv-wheel && bin/pytest -p no:cacheprovider --pyargs duograph.conformance --device CPU --quick
	cd .venv-wheel && bin/pytest -p no:cacheprovider --pyargs duograph.conformance --device Reference --quick

# ---- docs and benchmarks ---------------------------------------------------------------------------

docs: setup
	$(BIN)/python docs/build_reference.py --out docs/_build $(ARGS)

bench: .venv-bench/.duograph .venv-mindspore/.peers
	.venv-bench/bin/python benchmarks/eager.py --mindspore .venv-mindspore/bin/python \
	  --out benchmarks/results/eager.md $(ARGS)
	.venv-bench/bin/python benchmarks/compiled.py --out benchmarks/results/compiled.md
	.venv-bench/bin/python benchmarks/whole.py --mindspore .venv-mindspore/bin/python --out build/benchmarks $(ARGS)

# ---- the environment -------------------------------------------------------------------------------

define PREFLIGHT
missing() { \
  echo "duograph: $$1." >&2; \
  echo "  Debian, Ubuntu: apt-get install python3 python3-venv python3-dev gcc" >&2; \
  echo "  Fedora:         dnf install python3 python3-devel gcc" >&2; \
  echo "  macOS:          xcode-select --install; brew install python" >&2; \
  echo "(another interpreter: make PYTHON=/path/to/python3)" >&2; exit 1; }; \
command -v "$(PYTHON)" >/dev/null || missing "there is no $(PYTHON)"; \
"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
  || missing "$(PYTHON) is $$("$(PYTHON)" -V 2>&1); 3.10 or newer is needed"; \
"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null \
  || missing "$(PYTHON) lacks the venv module (package python3-venv)"; \
set -- $${CC:-cc}; command -v "$$1" >/dev/null || missing "there is no C compiler (looked for $${CC:-cc})"; \
"$(PYTHON)" -c 'import os, sys, sysconfig; \
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' \
  || missing "$(PYTHON) lacks its C header Python.h (package python3-dev or python3-devel)"
endef

.venv/.made:
	@$(PREFLIGHT)
	@echo "duograph: making .venv and installing into it; some two minutes the first time, most of it compiling C"
	$(PYTHON) -m venv .venv
	@touch $@

# DUOGRAPH_NATIVE=0: the compiled module follows below, where it is rebuilt only when it must be. Without it setuptools
# is all that the installation needs, so it is not given an environment of its own to build in.
.venv/.installed: .venv/.made pyproject.toml setup.py
	$(BIN)/pip install $(PIP_QUIET) 'setuptools>=77'
	DUOGRAPH_NATIVE=0 $(BIN)/pip install $(PIP_QUIET) --no-build-isolation --editable '.[dev]'
	@touch $@

.venv/.native: .venv/.installed $(NATIVE)
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

# Installed as an outsider's would be: through their own pyproject.toml and nothing else.
.venv/.plugins: $(PLUGINS:%=%/pyproject.toml) .venv/.installed | .venv/.native
	$(BIN)/pip install $(PIP_QUIET) --no-build-isolation $(PLUGINS:%=--editable %)
	@touch $@

.venv-bench/.peers: benchmarks/peers.txt
	@$(PREFLIGHT)
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install $(PIP_QUIET) -r benchmarks/peers.txt
	@touch $@

.venv-mindspore/.peers: benchmarks/peers-mindspore.txt
	@$(PREFLIGHT)
	$(PYTHON) -m venv .venv-mindspore
	.venv-mindspore/bin/pip install $(PIP_QUIET) -r benchmarks/peers-mindspore.txt
	@touch $@

.venv-gpu/.peers: benchmarks/peers-gpu.txt
	@$(PREFLIGHT)
	$(PYTHON) -m venv .venv-gpu
	.venv-gpu/bin/pip install $(PIP_QUIET) -r benchmarks/peers-gpu.txt
	@touch $@

.venv-gpu/.duograph: .venv-gpu/.peers $(CORE) $(NATIVE) $(shell find backend_cpu backend_cuda -name '*.py' -o -name '*.cuh') pyproject.toml setup.py
	$(CLEAN_COPY)
	.venv-gpu/bin/pip install $(PIP_QUIET) --force-reinstall --no-deps ./build/clean
	.venv-gpu/bin/pip install $(PIP_QUIET) 'duograph[cuda]'
	@touch $@

# A real installation, not an editable one: its size and its import time are among what is measured.
.venv-bench/.duograph: .venv-bench/.peers $(CORE) $(NATIVE) $(shell find backend_cpu -name '*.py') pyproject.toml setup.py
	$(CLEAN_COPY)
	.venv-bench/bin/pip install $(PIP_QUIET) --force-reinstall --no-deps ./build/clean
	.venv-bench/bin/pip install $(PIP_QUIET) duograph
	@touch $@

clean:
	rm -rf .venv .venv-wheel build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf core/*.egg-info *.egg-info plugins/*/*.egg-info plugins/*/build
	find backend_cpu -name '*.so' -delete
	find core backend_* plugins tests examples benchmarks docs -name __pycache__ -prune -exec rm -rf {} +

# The benchmarks' environments are large downloads, so `make clean` leaves them.
clean-bench:
	rm -rf .venv-bench .venv-mindspore .venv-gpu
