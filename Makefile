# Each target sets up what it needs, on a machine that has Python >= 3.10, a C compiler and make.
# Everything is installed under this folder: .venv, for `make bench` .venv-bench and .venv-mindspore, for `make bench-gpu`
# .venv-gpu, for `make test-torch` .venv-torch.
#
#   make demo      train on handwritten digits          make docs    the documentation site
#   make test      required for every change (< 15 min) make lint    formatter, ruff and mypy
#   make test-all  every device and check in full       make setup   install only
#   make bench     speed against other frameworks       make clean   remove .venv and all build products
#   make test-gpu  the CUDA backend on a GPU            make bench-gpu  its speed, with PyTorch and JAX
#   make test-torch    the example backend on PyTorch, which it downloads
#   make sanitize  the CPU backend's C under AddressSanitizer (gcc)
#   make parity    docstring examples of MindSpore, here and there
#   make parity-calls    sampled calls of MindSpore's functions, here and there
#   make fuzz N=2000 DEVICE=CPU SEED=1 LEVEL=O2    random programs, compiled and eager; FIRST=250 N=1 repeats one
#   make fuzz-files FILES=1000000 SEED=1           damaged files of every format, under AddressSanitizer

PYTHON ?= python3
# How much of the conformance suite `make test` runs on each device; `make test-all` runs all of it. Devices whose ops are
# NumPy, and those that share kernels, share the cases: every case runs on one of each kind.
DEVICES ?= CPU:sampled InnerRing:quick Reference:quick Template:quick OpenCL:quick CUDA-emulated:quick
SHARE_InnerRing ?= 1/3
SHARE_Reference ?= 2/3
SHARE_Template ?= 3/3
SHARE_OpenCL ?= 1/2
SHARE_CUDA-emulated ?= 2/2
# Devices that a machine may lack. A missing device is reported; it is a failure if DUOGRAPH_REQUIRE names it.
OPTIONAL ?= OpenCL CUDA-emulated
# Number of parallel test processes; auto means one per core.
JOBS ?= auto
# Arguments for the program: make demo ARGS="--epochs 3", make bench ARGS="--only gpt --pairs 3"
ARGS ?=

BIN := .venv/bin
PIP_QUIET := --quiet --disable-pip-version-check
FULL := $(patsubst %:full,%,$(filter %:full,$(DEVICES)))
SAMPLED := $(patsubst %:sampled,%,$(filter %:sampled,$(DEVICES)))
QUICK := $(patsubst %:quick,%,$(filter %:quick,$(DEVICES)))
CORE := $(shell find core -name '*.py')
# Sources of the compiled modules: their C files, and the op table whose `scalar` slots are printed as C.
NATIVE := $(shell find backend_cpu backend_cuda/duograph_cuda/native core/duograph/backend/codegen -name '*.[ch]' -o -name '*.inc' -o -name 'build.py' -o -name 'generate.py') \
          $(filter core/duograph/ops/% core/duograph/backend/codegen/%,$(CORE))
# Consecutive tests stay in one process and share the kernels that were prepared for an op.
SIDE_BY_SIDE = -n $(JOBS) --dist worksteal
# Hundreds of tests start a Python process; without .pyc files each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
# The plugin on PyTorch has an environment of its own: PyTorch is a large download.
PLUGINS := $(filter-out plugins/torch,$(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml)))

# The slowest folders come first, so that both processes are busy until the end.
TESTS := backend_cuda/tests backend_opencl/tests backend_cpu/tests tests

# Wheels are built from a clean copy: setuptools includes leftovers of earlier builds in build/.
CLEAN_COPY = rm -rf build/clean && mkdir -p build/clean && tar -cf - --exclude=__pycache__ --exclude='*.so' \
  core backend_cpu backend_opencl backend_cuda collectives pyproject.toml setup.py LICENSE README.md | tar -xf - -C build/clean

.PHONY: setup demo test test-all test-torch parity parity-calls clients fuzz fuzz-files sanitize bench docs lint unit wheel-test test-gpu bench-gpu clean clean-bench
.DELETE_ON_ERROR:

setup: .venv/.plugins

demo: setup
	$(BIN)/python examples/digits.py $(ARGS)

# ---- tests -----------------------------------------------------------------------------------------

test: lint unit $(FULL:%=full-%) $(SAMPLED:%=sampled-%) $(QUICK:%=quick-%)

# Compile every kernel of every dtype for every architecture; run the whole outside matrix; differentiate every public
# function; export every sample of the conformance suite as ONNX; and every row of tables that `make test` samples.
test-all: export DUOGRAPH_TESTS = full
test-all: lint unit $(FULL:%=full-%) $(SAMPLED:%=full-%) $(QUICK:%=full-%) full-WideRing wheel-test fuzz-files test-torch

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

unit: setup
	$(BIN)/pytest $(SIDE_BY_SIDE) $(TESTS)

# Print why the optional device $* cannot be used on this machine, or nothing.
define ABSENT
case " $(OPTIONAL) " in (*" $* "*) $(BIN)/python -c 'import os, sys; \
from duograph.backend import registry; \
required = os.environ.get("DUOGRAPH_REQUIRE", "").lower().split(","); \
problem = registry.problem_of(registry.entries()[sys.argv[1]]); \
print("" if problem is None or sys.argv[1].lower() in required else problem)' $* ;; esac
endef

# Run the conformance suite on the device $*, with these options, unless the machine lacks the device.
define CONFORMANCE
@mkdir -p build
@absent=$$($(ABSENT)); if [ -n "$$absent" ]; then echo "left out: conformance on $*: $$absent"; else \
  set -x; $(BIN)/pytest $(SIDE_BY_SIDE) --pyargs duograph.conformance --device $* $(1); fi
endef

full-%: setup
	$(call CONFORMANCE,--conformance-html build/conformance-$*.html)

sampled-%: setup
	$(call CONFORMANCE,--sampled --conformance-html build/conformance-$*.html)

# Compiling takes most of this run: programs are not optimised, and not kept for later runs.
quick-OpenCL: export DUOGRAPH_CACHE_LIMIT = 0
quick-OpenCL: export PYOPENCL_BUILD_OPTIONS = -cl-opt-disable

quick-%: setup
	$(call CONFORMANCE,--quick --sampled $(if $(SHARE_$*),--share $(SHARE_$*)))

# The backend on PyTorch: its own tests and training with torch.compile's usual compiler; the rest of the suite with
# one that takes milliseconds for each of its thousands of functions, not seconds.
test-torch: .venv-torch/.duograph
	.venv-torch/bin/pytest $(SIDE_BY_SIDE) tests/plugins/test_torch.py
	.venv-torch/bin/pytest $(SIDE_BY_SIDE) --pyargs duograph.conformance --device Torch -k test_training
	DUOGRAPH_TORCH_COMPILER=aot_eager .venv-torch/bin/pytest $(SIDE_BY_SIDE) --pyargs duograph.conformance --device Torch

N ?= 2000
FIRST ?= 0
DEVICE ?= CPU
SEED ?= 0
LEVEL ?= O0
# programs: whole networks and everything that Python can do; aliases: Tensors that several objects hold; sizes: arguments of
# many sizes, which become symbolic
KIND ?= programs

fuzz: setup
	$(BIN)/python -m duograph.conformance.fuzz -n $(N) --first $(FIRST) --device $(DEVICE) --seed $(SEED) --level $(LEVEL) --kind $(KIND) \
	  $(if $(filter-out auto,$(JOBS)),--jobs $(JOBS))

# A build with AddressSanitizer, in which memory blocks have exactly the requested size and are never reused. Child processes
# inherit the sanitizer.
define SANITIZED_BUILD
$(CLEAN_COPY)
cd build/clean && CFLAGS=-fsanitize=address LDFLAGS=-fsanitize=address $(abspath $(BIN))/python setup.py --quiet build_ext --inplace
endef
SANITIZED = cd build/clean && export PYTHONPATH=core:backend_cpu:backend_cuda \
  LD_PRELOAD="$$($${CC:-gcc} -print-file-name=libasan.so) $$($${CC:-gcc} -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 && $(abspath $(BIN))/pytest $(SIDE_BY_SIDE)

# Tests that crash a compiler or throw C++ exceptions are left out.
sanitize: setup
	$(SANITIZED_BUILD)
	$(SANITIZED) backend_cpu/tests --ignore backend_cpu/tests/test_toolchain.py \
	  --deselect backend_cpu/tests/test_runtime.py::test_freed_blocks_are_reused \
	  --deselect backend_cpu/tests/test_runtime.py::test_small_blocks_release_their_memory
	$(SANITIZED) --pyargs duograph.conformance --device CPU --quick

FILES ?= 1000000

# Every mutated node of every op, and FILES damaged files of all formats together.
fuzz-files: export DUOGRAPH_FUZZ_NODES = 0
fuzz-files: export DUOGRAPH_FUZZ_FILES = $(FILES)
fuzz-files: export DUOGRAPH_FUZZ_SEED = $(SEED)
fuzz-files: setup
	$(SANITIZED_BUILD)
	$(SANITIZED) $(CURDIR)/tests/files

# ---- on a machine with an NVIDIA GPU ---------------------------------------------------------------

define NEED_GPU
@$(BIN)/python -c 'import sys; from duograph.backend import registry; \
problem = registry.problem_of(registry.entries()["GPU"]); \
sys.exit(problem and "duograph: this needs an NVIDIA GPU, and nothing was run: " + problem)'
endef
# Steps that need no network, each with a time limit; their output is kept in build/check-gpu. GPU_PYTHON is an
# interpreter that has duograph, pytest, pytest-xdist and the CUDA packages. For some steps: ARGS="--steps smoke,kernels"
GPU_PYTHON ?= $(BIN)/python

test-gpu: $(if $(filter $(BIN)/python,$(GPU_PYTHON)),setup)
	$(GPU_PYTHON) backend_cuda/tests/check_gpu.py $(ARGS)

# Beside PyTorch and JAX, as far as they are there. With GPU_PYTHON nothing is downloaded; otherwise NEED_GPU comes
# first, so that without a GPU no peer is downloaded. For some parts: ARGS="--only kernels,gpt --peers JAX"
bench-gpu: $(if $(filter $(BIN)/python,$(GPU_PYTHON)),setup)
ifeq ($(GPU_PYTHON),$(BIN)/python)
	$(NEED_GPU)
	$(MAKE) .venv-gpu/.duograph
	.venv-gpu/bin/python benchmarks/gpu.py --out build/benchmarks/gpu.md $(ARGS)
else
	$(GPU_PYTHON) benchmarks/gpu.py --out build/benchmarks/gpu.md $(ARGS)
endif

# Test an installed wheel, outside the source folder, with a third-party plugin.
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

# Needs no network. Warnings, such as about a dead link, are errors; the tutorials are run when they have changed.
docs: setup
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html docs docs/_build $(ARGS)
	@echo "the site: docs/_build/index.html"

# Run the docstring examples of MindSpore here and there, and compare what is printed.
parity: setup .venv-mindspore/.peers
	$(BIN)/python tests/parity/run.py --mindspore .venv-mindspore/bin/python $(ARGS)

# Valid calls with one argument changed: another dtype, shape or type; results are cached.
parity-calls: setup .venv-mindspore/.peers
	$(BIN)/python tests/parity/calls.py --mindspore .venv-mindspore/bin/python $(ARGS)

# Packages that are written for MindSpore, each installed from the registry into an environment of
# its own and used once through duograph; CLIENT=mindcv for one of them.
clients: setup
	$(BIN)/python tests/clients/run.py $(CLIENT)

bench: .venv-bench/.duograph .venv-mindspore/.peers
	.venv-bench/bin/python benchmarks/eager.py --mindspore .venv-mindspore/bin/python \
	  --out benchmarks/results/eager.md $(ARGS)
	.venv-bench/bin/python benchmarks/compiled.py --out benchmarks/results/compiled.md
	.venv-bench/bin/python benchmarks/whole.py --mindspore .venv-mindspore/bin/python --out build/benchmarks $(ARGS)

# Train each example beside the same in torch: ARGS="--only vae,gan" for some of them.
bench-examples: .venv-bench/.duograph
	.venv-bench/bin/python benchmarks/examples.py $(ARGS)

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
	@echo "duograph: creating .venv and installing into it; the first time takes about two minutes, mostly for compiling C"
	$(PYTHON) -m venv .venv
	@touch $@

# DUOGRAPH_NATIVE=0 leaves out the compiled modules; the next rule builds them, and only when their sources changed. The installation
# then needs setuptools alone, so it uses no build isolation.
.venv/.installed: .venv/.made pyproject.toml setup.py
	$(BIN)/pip install $(PIP_QUIET) 'setuptools>=77'
	DUOGRAPH_NATIVE=0 $(BIN)/pip install $(PIP_QUIET) --no-build-isolation --editable '.[dev]'
	@touch $@

# A new installation of the Python packages leaves the compiled module as it is.
.venv/.native: $(NATIVE) setup.py | .venv/.installed
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

# Install the plugins as a third party would: through their own pyproject.toml.
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

.venv-torch/.torch: plugins/torch/pyproject.toml
	@$(PREFLIGHT)
	@echo "duograph: installing PyTorch into .venv-torch, a large download"
	$(PYTHON) -m venv .venv-torch
	.venv-torch/bin/pip install $(PIP_QUIET) 'setuptools>=64' wheel torch
	@touch $@

.venv-torch/.duograph: .venv-torch/.torch $(CORE) $(NATIVE) $(wildcard plugins/torch/duograph_torch/*.py) pyproject.toml setup.py
	$(CLEAN_COPY)
	.venv-torch/bin/pip install $(PIP_QUIET) --force-reinstall --no-deps ./build/clean ./plugins/torch
	.venv-torch/bin/pip install $(PIP_QUIET) 'duograph[conformance]' pytest-xdist
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

# Not an editable installation: the benchmarks measure its size and import time.
.venv-bench/.duograph: .venv-bench/.peers $(CORE) $(NATIVE) $(shell find backend_cpu -name '*.py') pyproject.toml setup.py
	$(CLEAN_COPY)
	.venv-bench/bin/pip install $(PIP_QUIET) --force-reinstall --no-deps ./build/clean
	.venv-bench/bin/pip install $(PIP_QUIET) duograph
	@touch $@

clean:
	rm -rf .venv .venv-wheel build dist docs/_build docs/api docs/.jupyter_cache docs/jupyter_execute .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf core/*.egg-info *.egg-info plugins/*/*.egg-info plugins/*/build
	find backend_cpu backend_cuda -name '*.so' -delete
	find core backend_* plugins tests examples benchmarks docs -name __pycache__ -prune -exec rm -rf {} +

# `make clean` keeps the environments of the benchmarks, which are large downloads.
clean-bench:
	rm -rf .venv-bench .venv-mindspore .venv-gpu .venv-torch
