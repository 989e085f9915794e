"""Tests of device faults, memory, the program cache, fused regions, and a training step.

The training step must stay on the device.
"""

import os
import re
import subprocess
import sys
import time

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.errors import DeviceError, DeviceMemoryError
from duograph.op import OPS
from opencl_harness import FORMS, backend, check, needs_device, run, type_of

cl = pytest.importorskip("pyopencl", reason="pyopencl is not installed")
pytestmark = needs_device


def python(code, *arguments, **environment):
    """Run a program in a new process; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "DUOGRAPH_DEVICE": "OpenCL", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_failed_build_saves_source_and_log():
    with pytest.raises(DeviceError, match="does not build") as caught:
        backend().device(0).build("__kernel void broken(__global int *x) { x[0] = nothing; }")
    source, log = re.search(
        r"source in (\S+), the compiler's log in (\S+)", str(caught.value)
    ).groups()
    with open(source) as text, open(log) as words:
        assert "broken" in text.read() and "nothing" in words.read()


def test_programs_are_cached_on_disk(monkeypatch):
    from duograph_opencl import programs

    device = backend().device(0)
    source = f"__kernel void once(__global int *x) {{ x[0] = {os.getpid()}; }}"
    device.build(source)
    monkeypatch.setattr(programs.disk_cache, "store", lambda *_: pytest.fail("built again"))
    device.build(source)


OUT_OF_MEMORY = """
import duograph as ms, numpy as np
x = ms.Tensor(np.ones(1 << 20, np.float32))
kept = [x + 1.0 for _ in range(3)]
dropped = x + 2.0
del dropped
try:
    ms.ops.zeros((1 << 23,))
except ms.errors.DeviceMemoryError as error:
    print(error)
stats = ms.memory_stats()
print(stats["cached"], stats["limit"])
print(float((kept[0] + 1.0).asnumpy()[0]))
"""


def test_out_of_memory_error_and_recovery():
    out = python(OUT_OF_MEMORY, DUOGRAPH_OPENCL_MEMORY_LIMIT=str(28 << 20))
    assert re.search(
        r"no memory for 33554432 bytes .* in use \d+, cached 0, limit 29360128", out
    ), out
    assert out.splitlines()[1:] == ["0 29360128", "3.0"]


def test_pool_is_emptied_before_memory_runs_out():
    code = (
        "import duograph as ms, numpy as np\n"
        "for n in range(20, 24): (ms.Tensor(np.ones(n << 16, np.float32)) + 1.0).asnumpy()\n"
        "print(ms.memory_stats()['in_use'])"
    )
    assert int(python(code, DUOGRAPH_OPENCL_MEMORY_LIMIT=str(16 << 20))) < 4096


FORK = """
import os, sys
import duograph as ms, numpy as np
x = ms.Tensor(np.ones(4, np.float32)) + 1.0
x.asnumpy()
child = os.fork()
if child == 0:
    ones = lambda: ms.Tensor(np.ones(5, np.float32))
    for use in (lambda: x + 1.0, lambda: x.asnumpy(), lambda: ones() * x[0]):
        try:
            use()
            os._exit(1)
        except ms.errors.DeviceError as error:
            if "forked" not in str(error):
                os._exit(2)
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float((x + 1.0).asnumpy()[0]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_child_raises():
    assert python(FORK).split() == ["0", "3.0"]


LOST = """
import sys
import duograph as ms, numpy as np, pyopencl as cl

def twice(x):
    return ms.ops.matmul(x, x) + x

where, level = sys.argv[1:]
real, lost = getattr(cl, where), []

def call(*args, **kwargs):
    if lost:
        code = cl.status_code.INVALID_COMMAND_QUEUE
        raise cl.LogicError(cl._cl._ErrorRecord(msg="", code=code, routine=where))
    return real(*args, **kwargs)

setattr(cl, where, call)
twice = ms.jit(twice, jit_level=level) if level != "eager" else twice
x = ms.Tensor(np.ones((8, 8), np.float32))
kept = twice(x)
assert kept.asnumpy()[0, 0] == 9
lost.append(True)

uses = (lambda: twice(x).asnumpy(), kept.asnumpy, lambda: kept + 1.0, lambda: kept.move_to("CPU"),
        lambda: ms.Tensor(np.ones(2, np.float32)) + 1.0, lambda: float(kept[0, 0]),
        lambda: twice(kept))
for k, use in enumerate(uses):
    try:
        use()
        print("no error from use", k)
    except ms.errors.DeviceError as error:
        for part in ("the device was lost (", "INVALID_COMMAND_QUEUE", ", seen at ",
                     "Start a new one"):
            if part not in str(error):
                print("use", k, error)
    lost.clear()
there = ms.Tensor(np.ones(3, np.float32), device="CPU")
print((there + there).asnumpy().tolist())
"""


@pytest.mark.parametrize("level", ["eager", "O1", "O2"])
@pytest.mark.parametrize("where", ["enqueue_nd_range_kernel", "enqueue_copy"])
def test_calls_after_device_loss_raise(where, level):
    """Even if the driver accepts calls again, the data on the device cannot be trusted."""
    assert python(LOST, where, level).splitlines() == ["[2.0, 2.0, 2.0]"]


def test_two_processes_share_the_device():
    code = (
        "import duograph as ms, numpy as np\n"
        "x = ms.Tensor(np.ones((64, 64), np.float32))\n"
        "for _ in range(50): x = ms.ops.tanh(ms.ops.matmul(x, x))\n"
        "print(float(x.asnumpy()[0, 0]))"
    )
    environment = {**os.environ, "DUOGRAPH_DEVICE": "OpenCL"}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [(*p.communicate(timeout=300), p.returncode) for p in both]
    assert [code for *_, code in said] == [0, 0], said
    assert [float(out) for out, *_ in said] == [1.0, 1.0], said


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_matmul_on_every_device_of_the_machine(dtype):
    """Vectors of sixteen elements are whole also where a driver does not know the processor."""
    made, op = backend(), OPS["matmul"]
    straight = {"transpose_a": False, "transpose_b": False}
    rng = np.random.default_rng(5)
    x, y = ((rng.standard_normal(s) * 4).astype(dtype) for s in ((19, 40), (40, 37)))
    for info in made.devices():
        if dtype is np.float64 and "fp64" not in made.device(info.index).capabilities:
            continue
        call = made.prepare(op, (type_of(x), type_of(y)), straight, info.index)
        out = call(*(made.copy_in(a, info.index) for a in (x, y)))
        found = made.copy_out(out, (19, 37), np.dtype(dtype), info.index)
        np.testing.assert_allclose(found, x @ y, rtol=1e-5, atol=1e-4, err_msg=info.description)


def test_unmatched_device_name_is_reported():
    code = "from duograph.cli.devices import as_text; print(as_text())"
    out = python(code, DUOGRAPH_OPENCL_DEVICE="no such thing", DUOGRAPH_DEVICE="CPU")
    assert "OpenCL: not available" in out and "'no such thing' names no device" in out
    assert "CPU: available, used by default" in out


@pytest.mark.parametrize(
    "facts, reason",
    [
        ({"compiler_available": False}, "has no compiler"),
        ({"available": False}, "not available"),
        ({"opencl_c_version": "OpenCL C 1.1 xyz"}, "its language is OpenCL C 1.1 xyz; .* 1.2"),
        ({"opencl_c_version": ""}, "its language is ;"),
        ({"profile": "EMBEDDED_PROFILE", "extensions": ""}, "no 64-bit integers"),
        ({"single_fp_config": cl.device_fp_config.INF_NAN}, "does not round to nearest"),
        ({"single_fp_config": cl.device_fp_config.ROUND_TO_NEAREST}, "no infinities and NaN"),
    ],
)
def test_device_that_lacks_what_all_kernels_need_is_left_out(facts, reason):
    from duograph_opencl.probe import probe

    class Lesser:
        """The machine's device, but for some of its attributes."""

        def __getattr__(self, name):
            return facts[name] if name in facts else getattr(device, name)

    device = backend().device(0).cl_device
    assert re.search(reason, probe(Lesser()))


def test_kernel_that_a_driver_compiles_too_late_raises():
    """Making the kernel of a built program may fail, as with Oclgrind; DeviceError names it."""
    device = backend().device(0)
    program = device.build(device.dialect.own_prelude() + "DG_KERNEL void k(DG_GLOBAL i32 *x) {}")
    with pytest.raises(DeviceError, match=r"other: .*INVALID_KERNEL_NAME"):
        device.launcher(program, "other", (1, 1, 1), (1, 1, 1), 1, ())


def test_device_that_computes_wrongly_is_left_out(monkeypatch):
    """As a driver does for which no converted number is negative."""
    from duograph_opencl import probe
    from duograph_opencl.backend import OpenCL

    device = backend().device(0).cl_device
    assert probe.probe(device) is None
    wrong = probe._SOURCE.replace("wide < 0", "wide < -9")
    assert wrong != probe._SOURCE
    monkeypatch.setattr(probe, "_SOURCE", wrong)
    assert re.search(r"gave \[3, 4, .*; wanted \[-12, -9", probe.probe(device))
    made = OpenCL()
    assert re.search(rf"{re.escape(device.name.strip())} .*: a kernel ran", made.available())


def test_fp64_extension(monkeypatch):
    from duograph.errors import UnsupportedOpError

    made = backend()
    monkeypatch.setattr(made.device(0), "capabilities", frozenset())
    with pytest.raises(UnsupportedOpError, match=r"pow: .*fp64"):
        made.check(made.device(0), "pow", "DG_FN f64 dg_exp_wide(f64 x)")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(7, 5), (64, 300), (3, 4097)], ids=str)
def test_regions(form, shape, monkeypatch):
    """Both ways to divide work agree on two-pass reductions, broadcasts and two results."""
    from duograph.backend.codegen.region_plan import plan_region
    from duograph.ir.text import parse

    n, row = shape
    graph = parse(
        f"""graph(%0: float32[{n}, {row}], %1: float32[{row}]) {{
  %2 = add(%0, %1) : float32[{n}, {row}]
  %3 = reduce_max(%2, axis=(1,), keepdims=True) : float32[{n}, 1]
  %4 = sub(%2, %3) : float32[{n}, {row}]
  %5 = exp(%4) : float32[{n}, {row}]
  %6 = reduce_sum(%5, axis=(1,), keepdims=True) : float32[{n}, 1]
  %7 = div(%5, %6) : float32[{n}, {row}]
  return %7, %6
}}"""
    )
    assert plan_region(graph) is not None
    made = backend(form)
    (call,) = made.compile([graph], 0)
    rng = np.random.default_rng(1)
    x, y = (
        rng.standard_normal(shape).astype(np.float32),
        rng.standard_normal(row).astype(np.float32),
    )
    got = call(made.copy_in(x, 0), made.copy_in(y, 0))
    z = (x + y).astype(np.float64)
    e = np.exp(z - z.max(1, keepdims=True))
    total = e.sum(1, keepdims=True)
    found = made.copy_out(got[0], shape, np.dtype(np.float32), 0)
    np.testing.assert_allclose(found, e / total, rtol=2e-5)
    sums = made.copy_out(got[1], (n, 1), np.dtype(np.float32), 0)
    np.testing.assert_allclose(sums, total, rtol=1e-5)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2, 2)
        self.flat = nn.Flatten()
        self.head = nn.Dense(4 * 4 * 4, 10)

    def construct(self, x):
        return self.head(self.flat(self.pool(ops.relu(self.norm(self.conv(x))))))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_training_step_copies_nothing(compiled):
    """H04: OpenCL backend through pyopencl"""
    ms.set_context(device_target="OpenCL")
    ms.set_seed(1)
    try:
        net, loss = Net(), nn.CrossEntropyLoss()
        net.set_train()
        optimizer = nn.Adam(net.trainable_params(), 1e-2)
        with_gradients = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

        def step(x, y):
            value, gradients = with_gradients(x, y)
            optimizer(gradients)
            return value

        step = ms.jit(step) if compiled else step
        rng = np.random.default_rng(0)
        x = ms.Tensor(rng.standard_normal((8, 1, 8, 8)).astype(np.float32))
        y = ms.Tensor(rng.integers(0, 10, 8).astype(np.int32))
        first = float(step(x, y).asnumpy())
        step(x, y)
        before = ms.memory_stats()
        for _ in range(4):
            last = step(x, y)
        after = ms.memory_stats()
        assert float(last.asnumpy()) < first
    finally:
        ms.set_context(device_target="CPU")
    for name in ("copies_in", "copies_out"):
        assert after[name] == before[name], name


def no_memory(routine):
    """Return the exception that pyopencl raises when a driver has no memory."""
    record = cl._cl._ErrorRecord(
        msg="", code=cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, routine=routine
    )
    return cl.MemoryError(record)


def failing(function, times):
    """Return a function whose first `times` calls fail for lack of memory, and a list of calls.

    The other calls go to `function`.
    """
    calls = []

    def attempt(*args, **kwargs):
        calls.append(1)
        if len(calls) <= times:
            raise no_memory(function.__name__)
        return function(*args, **kwargs)

    return attempt, calls


# where drivers may find that there is no memory: name, and what then runs through it
LATE = {
    "Buffer": lambda d: d.allocate(12_345_678, "asked"),
    "enqueue_copy": lambda d: d.copy_in(np.ones(4321, np.float32)),
    "enqueue_nd_range_kernel": lambda d: d.launcher(
        d.build("__kernel void asked(__global float *x) { x[get_global_id(0)] = 1; }"),
        "asked", (4, 1, 1), (1, 1, 1), 1, (),
    )(d.allocate(16, "x")),
}  # fmt: skip


@pytest.mark.parametrize("where", LATE)
def test_out_of_memory_retries_with_an_empty_pool(where, monkeypatch):
    device = backend().device(0)
    kept = device.copy_in(np.arange(5.0))
    for times in (1, 2):
        device.allocate(1 << 20, "dropped")  # cached from here on
        assert device.memory_stats()["cached"] >= 1 << 20
        attempt, calls = failing(getattr(cl, where), times)
        with monkeypatch.context() as patch:
            patch.setattr(cl, where, attempt)
            if times == 1:
                held = LATE[where](device)
            else:
                with pytest.raises(
                    DeviceMemoryError,
                    match=r"MEM_OBJECT_ALLOCATION_FAILURE.*in use \d+, cached 0, limit \d+ bytes",
                ):
                    LATE[where](device)
        assert len(calls) == 2
        assert device.memory_stats()["cached"] < 1 << 20
    del held
    assert device.copy_out(kept, (5,), np.dtype(np.float64)).tolist() == [0, 1, 2, 3, 4]


def test_failed_kernel_build_names_source_and_log(monkeypatch):
    """An eager call raises; a compiled function warns and uses the kernels of its ops."""
    from duograph.ir.text import parse

    made = backend("grid")
    real = made.device(0).build
    monkeypatch.setattr(
        type(made.device(0)), "build", lambda self, source: real(source + "\nnot C;")
    )
    made._modules.clear()
    with pytest.raises(
        DeviceError, match=r"does not build .*: source in (\S+kernel\.cl), .* log in (\S+)"
    ) as caught:
        check("grid", "add", [np.ones(3, np.float32), np.ones(3, np.float32)])
    source, log = re.search(
        r"source in (\S+), the compiler's log in (\S+)", str(caught.value)
    ).groups()
    with open(source) as text, open(log) as words:
        assert "DG_KERNEL" in text.read() and "not" in words.read()
    graph = parse("graph(%0: float32[7]) {\n  %1 = exp(%0) : float32[7]\n  return %1\n}")
    with pytest.warns(
        RuntimeWarning, match=r"part of a compiled function runs op by op: a kernel does not build"
    ):
        (reason,) = made.compile([graph], 0)
    assert "does not build" in reason


def test_memory_error_is_raised_by_the_pool():
    with pytest.raises(DeviceMemoryError, match=r"huge: no memory for \d+ bytes"):
        backend().device(0).allocate(1 << 50, "huge")


def test_own_builtin_declarations_on_pocl(monkeypatch):
    """Kernels are built with few declarations of built-in functions.

    A kernel that calls other functions is built too; a wrong kernel is refused.
    """
    from duograph_opencl import programs

    device = backend().device(0)
    version = device.cl_device.platform.version
    if programs._DECLARED not in version:
        pytest.skip(
            f"only {programs._DECLARED}x is given declarations of our own; this is {version}"
        )
    seen = []
    build = programs.cl.Program.build
    monkeypatch.setattr(
        programs.cl.Program,
        "build",
        lambda self, options, **k: seen.append(options[-1]) or build(self, options, **k),
    )
    kernel = (
        "DG_KERNEL void k(DG_GLOBAL f32 *x) { x[0] = %s; }" + f" /* {time.time()} */"
    )  # in no cache
    kernel = device.dialect.own_prelude() + kernel
    short = "-D_OPENCL_H_"
    for function, ways in (("sqrt(x[0])", [True]), ("sinpi(x[0])", [True, False])):
        seen.clear()
        run = device.launcher(
            programs.build_program(device, kernel % function), "k", (1,), (1,), 1, ()
        )
        assert [options == short for options in seen] == ways
        handle = device.copy_in(np.array([0.25], np.float32))
        run(handle)
        want = {"sqrt(x[0])": 0.5, "sinpi(x[0])": np.sqrt(0.5)}[function]
        np.testing.assert_allclose(
            device.copy_out(handle, (1,), np.dtype(np.float32)), [want], rtol=1e-6
        )
    with pytest.raises(DeviceError, match="does not build"):
        programs.build_program(device, kernel % "no_such_function(x[0])")


def test_every_function_of_the_headers_is_declared():
    from duograph.backend.codegen import dialect
    from duograph_opencl import programs

    text = "".join((dialect._HERE / name).read_text() for name in dialect.HEADERS)
    called = set(re.findall(r"\b(?:LIBM|DG_LIBM_F\d\d|DG_(?:UN|BIN)ARY_F64)\((\w+)\)", text)) - {
        "name"
    }
    declared = set(re.findall(r"\bDG_(?:UN|BIN)ARY_BUILTIN\((\w+)\)", programs._declarations()))
    assert {"floor", "erfc", "hypot"} <= called
    assert called <= declared


@pytest.mark.parametrize("form", FORMS)
def test_tiles_are_measured_once_and_used_afterwards(form, tmp_path):
    """`duograph tune` stores the best tile size by device and driver, and other processes use it.

    It writes a line for each choice.
    """
    from duograph.backend.grid.tiles import GROUP, PROCESSOR, SHORT_VECTORS, best_of

    choices = PROCESSOR if form == "serial" else GROUP
    default, *_, chosen = choices
    assert best_of({**dict.fromkeys(choices, 1.0), chosen: 0.5}) == chosen
    assert best_of({**dict.fromkeys(choices, 1.0), chosen: 0.99}) == default  # that is noise

    settings = {"DUOGRAPH_CACHE_DIR": str(tmp_path), "DUOGRAPH_OPENCL_FORM": form}
    used = (
        "from duograph.backend import registry; print(registry.backend('OpenCL').device(0).tiles)"
    )
    defaults = ("None", str(SHORT_VECTORS)) if form == "serial" else ("None",)
    assert python(used, **settings).strip() in defaults
    tune = (
        "from duograph_opencl import backend\n"
        "from duograph.backend.grid import tiles\n"
        "tiles.ROUNDS = tiles.CALLS = 1\n"
        "backend.side_of = lambda device: 64\n"  # the emulated grid is slow
        f"backend.best_of = lambda found: tiles.best_of({{**found, tiles.{chosen!r}: 1e-9}})\n"
        "from duograph.cli import main\n"
        "raise SystemExit(main(['tune', '--device', 'OpenCL:0']))"
    )
    *lines, last = python(tune, **settings).splitlines()
    for line, choice in zip(lines, choices, strict=True):
        assert re.fullmatch(rf"OpenCL:0 matmul 64x64x64 float32, {choice}: \d+ GFLOP/s", line)
    assert re.fullmatch(rf"OpenCL:0 chosen: {chosen}, kept in {tmp_path}/\S+\.json", last)
    assert python(used, **settings) == f"{chosen}\n"


@pytest.mark.parametrize("bits", [0, 128, 256, 512])
def test_default_tiles_follow_the_vector_registers(bits, monkeypatch):
    from duograph.backend.grid.tiles import SHORT_VECTORS
    from duograph_opencl import device, probe

    made = device.Device(backend().device(0).cl_device)
    monkeypatch.setattr(device, "stored_tiles", lambda _: None)
    found = probe.register_bits(made)  # what this machine's compiler says
    assert found in (0, 128, 256, 512)
    monkeypatch.setattr(device, "register_bits", lambda _: bits)
    assert made.tiles == (SHORT_VECTORS if made.serial and bits in (128, 256) else None)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype, tol", [(np.float32, 2e-6), (np.float64, 1e-13), (np.int64, 0)])
def test_tiles_do_not_change_results(form, dtype, tol, monkeypatch):
    """Every tile size gives the same bits, which agree with the reference.

    The tested sizes fill no tile, one strip, or several strips.
    """
    from duograph.backend.grid.tiles import choices_of

    device = backend(form).device(0)
    rng = np.random.default_rng(5)
    for m, n, depth in ((5, 7, 600), (67, 50, 9), (200, 131, 40)):
        x, y = (rng.standard_normal(s) * 3 for s in ((m, depth), (depth, n)))
        arrays = [x.astype(dtype), y.astype(dtype)]
        check(form, "matmul", arrays, tol, transpose_a=False, transpose_b=False)
        found = set()
        for tiles in choices_of(device):
            monkeypatch.setattr(device, "tiles", tiles)
            (got,) = run(form, "matmul", arrays, transpose_a=False, transpose_b=False)
            found.add(got.tobytes())
        assert len(found) == 1
