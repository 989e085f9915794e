"""Kernels on devices that lack features or have low limits: a matrix of configurations and cases.

One device stands in for the weaker ones (`duograph_opencl.features`).
"""

import os
import re
import subprocess
import sys
import types

import numpy as np
import pytest
from amount import FULL, spread
from duograph.dtype import float32, int64, uint64
from duograph.errors import DeviceError, DeviceMemoryError, UnsupportedOpError
from opencl_harness import CONFIGURATIONS, backend, check, environment, needs_device, run

R = np.random.default_rng(7)


def f32(*shape):
    return R.standard_normal(shape).astype(np.float32)


# ---- what the device and the environment say -----------------------------------------------------


def device_like(**changes):
    """Return a stand-in for a pyopencl device; `changes` are some of its attributes."""
    facts = {
        "extensions": "cl_khr_fp64 cl_khr_fp16 cl_khr_subgroup_shuffle cl_intel_subgroups",
        "profile": "FULL_PROFILE",
        "max_work_group_size": 1024,
        "max_work_item_sizes": [512, 512, 64],
        "local_mem_size": 32768,
        "max_mem_alloc_size": 1 << 31,
        "address_bits": 64,
        "get_info": lambda info: 0,
    }
    return types.SimpleNamespace(**{**facts, **changes})


# attributes of the device, the two variables, and some of the features that follow
FEATURES = [
    ({}, "", "", {"fp64": True, "fp16": True, "int64": True, "subgroups": 1, "group": 512}),
    ({"extensions": ""}, "", "", {"fp64": False, "fp16": False, "subgroups": 0, "int64": True}),
    ({"extensions": "cl_intel_subgroups"}, "", "", {"subgroups": 2}),
    ({"extensions": "", "get_info": lambda info: 63}, "", "", {"fp64": True}),
    ({"profile": "EMBEDDED_PROFILE"}, "", "", {"int64": False}),
    (
        {"profile": "EMBEDDED_PROFILE", "extensions": "cles_khr_int64"},
        "",
        "",
        {"int64": True, "fp64": False},
    ),
    ({}, "fp64, fma", "", {"fp64": False, "fma": False, "fp16": True, "pragmas": True}),
    ({}, "pragmas,int64,subgroups", "", {"pragmas": False, "int64": False, "subgroups": 0}),
    ({}, "embedded", "", {"fp64": False, "local": 1024, "buffer": 1 << 20, "address": 32}),
    ({}, "embedded", "local=4096", {"local": 4096, "fp16": False}),
    ({}, "", "group=64,kernel_group=8", {"group": 64, "kernel_group": 8, "address": 64}),
    ({}, "", "group=4096, buffer=99999999999", {"group": 512, "buffer": 1 << 31}),
]


@pytest.mark.parametrize("changes, without, limits, wanted", FEATURES)
def test_features_of_device_and_environment(changes, without, limits, wanted):
    pytest.importorskip("pyopencl")
    from duograph_opencl.features import LIMITS_VARIABLE, WITHOUT_VARIABLE, features_of

    variables = {WITHOUT_VARIABLE: without, LIMITS_VARIABLE: limits}
    found = features_of(device_like(**changes), variables)
    assert {name: getattr(found, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("WITHOUT", "fp65", r"WITHOUT: got 'fp65'; wanted some of embedded, fp64, .*subgroups"),
        ("WITHOUT", "fp64=0", r"WITHOUT: got 'fp64=0'"),
        (
            "LIMITS",
            "group",
            r"LIMITS: got 'group'; wanted NAME=NUMBER with one of group, .*address",
        ),
        ("LIMITS", "group=0", r"LIMITS: got 'group=0'.* above 0"),
        ("LIMITS", "groups=8", r"LIMITS: got 'groups=8'"),
        ("LIMITS", "local=1k", r"LIMITS: got 'local=1k'"),
    ],
)
def test_wrong_variable_is_refused(name, value, message):
    pytest.importorskip("pyopencl")
    from duograph_opencl.features import features_of

    with pytest.raises(DeviceError, match=message):
        features_of(device_like(), {f"DUOGRAPH_OPENCL_{name}": value})


@needs_device
def test_device_without_64_bit_integers_is_left_out(monkeypatch):
    from duograph_opencl.backend import OpenCL

    monkeypatch.setenv("DUOGRAPH_OPENCL_WITHOUT", "int64")
    assert "it has no 64-bit integers" in OpenCL().available()


# ---- the matrix ----------------------------------------------------------------------------------

over_configurations = pytest.mark.parametrize("configuration", CONFIGURATIONS)

# op -> the function in float64, and the range of arguments
FUNCTIONS = {
    "sin": (np.sin, -1e5, 1e5), "cos": (np.cos, -1e5, 1e5), "tan": (np.tan, -1e5, 1e5),
    "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1), "atan": (np.arctan, -9, 9),
    "sinh": (np.sinh, -89, 89), "cosh": (np.cosh, -89, 89), "asinh": (np.arcsinh, -1e6, 1e6),
    "acosh": (np.arccosh, 1, 1e6), "atanh": (np.arctanh, -1, 1),
    "exp": (np.exp, -80, 88), "expm1": (np.expm1, -9, 88), "log": (np.log, 0, 1e30),
    "log1p": (np.log1p, -1, 1e3), "tanh": (np.tanh, -9, 9), "erf": (None, -4, 4),
    "erfc": (None, -4, 9),
}  # fmt: skip
FUNCTIONS_OF_TWO = {"pow": np.power, "atan2": np.arctan2}


def exact(name, x):
    """Return a function of float64 numbers, correct to about 1e-15."""
    import math

    function = FUNCTIONS[name][0] or np.vectorize(getattr(math, name))
    with np.errstate(all="ignore"):
        return function(x.astype(np.float64))


def ulps(got, want):
    """Return the error of float32 numbers in units in the last place."""
    near = want.astype(np.float32)
    assert ((got == near) | (np.isfinite(got) & np.isfinite(near))).all()
    size = np.spacing(np.maximum(np.abs(near), np.float32(2.0**-126)))
    with np.errstate(invalid="ignore"):
        return np.where(got == near, 0.0, np.abs(got - want) / size).max()


# Limits of groups and buffers do not concern them; the loops of a processor take long to compile.
WITHOUT = ("everything", "fp64", "fma", "embedded") if FULL else ("everything", "embedded")
MATHEMATICS = ("serial: fp64", *(f"grid: {w}" for w in WITHOUT))


@needs_device
@pytest.mark.parametrize("configuration", MATHEMATICS)
def test_float32_functions(configuration):
    """All functions, in one kernel, are at most 2 ulp off, however the device computes them."""
    from duograph.ir.text import parse

    made, n = backend(configuration), 1000
    names = [*FUNCTIONS, *FUNCTIONS_OF_TWO]
    operands = [R.uniform(low, high, n).astype(np.float32) for _, low, high in FUNCTIONS.values()]
    x, y = np.exp(R.uniform(-20, 20, n)).astype(np.float32), R.uniform(-3, 3, n).astype(np.float32)
    lines = [f"%{20 + k} = {f}(%{k}) : float32[{n}]" for k, f in enumerate(FUNCTIONS)]
    lines += [f"%{40 + k} = {f}(%18, %19) : float32[{n}]" for k, f in enumerate(FUNCTIONS_OF_TWO)]
    parameters = ", ".join(f"%{k}: float32[{n}]" for k in range(20))
    outputs = ", ".join(re.findall(r"%[234]\d(?= =)", "\n".join(lines)))
    graph = parse(f"graph({parameters}) {{\n" + "\n".join(lines) + f"\nreturn {outputs}\n}}")
    (call,) = made.compile([graph], 0)
    handles = call(*[made.copy_in(a, 0) for a in (*operands, x, y)])
    found = [made.copy_out(h, (n,), np.dtype(np.float32), 0) for h in handles]
    wanted = [exact(name, a) for name, a in zip(FUNCTIONS, operands)]
    wanted += [f(x.astype(np.float64), y.astype(np.float64)) for f in FUNCTIONS_OF_TWO.values()]
    wrong = {f: e for f, g, w in zip(names, found, wanted) if (e := ulps(g, w)) > 2}
    assert not wrong


LEAST, MOST = -(2**63), 2**63 - 1
# float32 -> the nearest int64; NaN gives 0
NEAREST = {
    0.0: 0, 1.0: 1, -1.5: -1, 1e-45: 0, 9.2e18: 9200000267938955264, 9.3e18: MOST, -2e19: LEAST,
    3.4e38: MOST, -3.4e38: LEAST, np.inf: MOST, -np.inf: LEAST, np.nan: 0,
}  # fmt: skip
NAN = np.array([[1, np.nan, 3], [4, 5, 6]], np.float32)
CASES = [
    ("cast", [np.array([0, 0.5, 7, 1e-45, 4e9, 9.2e18, 9.3e18], np.float32)], {"dtype": uint64}, 0),
    ("cast", [(f32(500) * 100).astype(np.float16)], {"dtype": float32}, 0),
    ("add", [f32(300).astype(np.float16), f32(300).astype(np.float16)], {}, 0),
    ("reduce_sum", [f32(9, 3000)], {"axis": (1,), "keepdims": False}, 1e-5),
    ("reduce_sum", [f32(2000, 70)], {"axis": (0,), "keepdims": False}, 1e-5),
    ("reduce_max", [f32(7, 999)], {"axis": (1,), "keepdims": False}, 0),
    ("reduce_min", [NAN], {"axis": (0, 1), "keepdims": False}, 0),
    ("reduce_sum", [R.integers(-9, 9, (5, 700))], {"axis": (1,), "keepdims": False}, 0),
    ("argmax", [f32(6, 1000)], {"axis": 1}, 0),
    ("cumsum", [f32(5, 60)], {"axis": 1, "exclusive": False, "reverse": False}, 1e-5),
    ("sort", [f32(4, 37)], {"axis": 1, "descending": True}, 0),
    ("matmul", [f32(65, 300), f32(300, 33)], {"transpose_a": False, "transpose_b": False}, 2e-6),
    ("matmul", [f32(2, 900), f32(40, 900)], {"transpose_a": False, "transpose_b": True}, 2e-6),
    ("transpose", [f32(67, 129)], {"perm": (1, 0)}, 0),
    ("gather", [f32(6, 5, 4), np.array([[0, -1], [3, 3]])], {"axis": 1}, 0),
    ("scatter_add", [f32(6, 4), np.array([1, 3, 1, 5, 1]), f32(5, 4)], {"axis": 0}, 1e-6),
]


@needs_device
@pytest.mark.parametrize(
    "case, configuration",
    spread(range(len(CASES)), CONFIGURATIONS, each=6),
    ids=lambda v: f"{v}-{CASES[v][0]}" if isinstance(v, int) else v,
)
def test_kernel_on_weaker_device(configuration, case):
    name, arrays, attributes, tol = CASES[case]
    check(configuration, name, arrays, tol, **attributes)


@needs_device
@over_configurations
def test_cast_to_int64_takes_the_nearest(configuration):
    (found,) = run(configuration, "cast", [np.array(list(NEAREST), np.float32)], dtype=int64)
    assert found.tolist() == list(NEAREST.values())


SOFTMAX = """graph(%0: float32[9, 3000]) {
  %1 = reduce_max(%0, axis=(1,), keepdims=True) : float32[9, 1]
  %2 = sub(%0, %1) : float32[9, 3000]
  %3 = exp(%2) : float32[9, 3000]
  %4 = reduce_sum(%3, axis=(1,), keepdims=True) : float32[9, 1]
  %5 = div(%3, %4) : float32[9, 3000]
  return %5
}"""


@needs_device
@over_configurations
def test_fused_softmax_on_weaker_device(configuration):
    from duograph.ir.text import parse

    made, x = backend(configuration), f32(9, 3000)
    (call,) = made.compile([parse(SOFTMAX)], 0)
    found = made.copy_out(call(made.copy_in(x, 0)), x.shape, x.dtype, 0)
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=2e-5)


# ---- what kernels are given ----------------------------------------------------------------------


@needs_device
def test_float64_says_what_is_missing():
    with pytest.raises(UnsupportedOpError, match=r"sin: its kernel needs 64-bit floating .*\(fp64"):
        check("grid: fp64", "sin", [np.ones(3)])


@needs_device
def test_no_float32_function_names_float64():
    """The source has neither the type float64 nor a constant without the suffix f."""
    from duograph.backend.codegen import dialect

    text = dialect._single_headers()
    for name in (*FUNCTIONS, *FUNCTIONS_OF_TWO, "hypot", "cbrt", "to_i64", "to_u64"):
        function = f"dg_f32_{name}" if name.startswith("to_") else f"dg_{name}_f32"
        needed = dialect.pruned(text, function)
        assert function in needed
        assert not re.findall(r"\bf64\b|\b\d+\.\d+(?:e[+-]?\d+)?(?![\df.e])", needed), name


@needs_device
@pytest.mark.parametrize("group", [32, 1])
def test_groups_are_as_small_as_each_kernel_needs(group):
    """The limit of each kernel decides its group size; the device's limit stays unchanged."""
    made = backend(f"grid: kernel_group={group}")
    device, sizes = made.device(0), []
    launcher = device.launcher

    def watched(*arguments):
        run = launcher(*arguments)
        sizes.append(int(np.prod(arguments[3])))
        return run

    device.launcher = watched
    try:
        check(f"grid: kernel_group={group}", "reduce_sum", [f32(3, 4111)], 1e-5,
              axis=(1,), keepdims=False)  # fmt: skip
    finally:
        del device.launcher
    assert sizes and max(sizes) == group < device.group


@needs_device
def test_largest_buffer_is_named():
    device = backend("grid: buffer=1048576,address=32").device(0)
    assert device.allocate(1 << 20, "whole").size == 1 << 20
    assert device.allocate((1 << 20) - 1, "less").size <= 1 << 20
    assert device.memory_stats()["limit"] < 1 << 32
    with pytest.raises(DeviceMemoryError, match=r"asked: .* one buffer there has at most 1048576"):
        device.allocate((1 << 20) + 1, "asked")


@needs_device
def test_full_device_keeps_its_options():
    """A macro stands for each feature that is switched off; with all features PoCL needs none."""
    options = backend("serial").device(0).options
    assert not [o for o in options if "WITHOUT" in o and "FP64" not in o]
    assert "-DDG_WITHOUT_FP64" in backend("serial: fp64").device(0).options
    assert {"-DDG_WITHOUT_FP64", "-DDG_WITHOUT_FMA"} <= set(
        backend("grid: embedded").device(0).options
    )


TRAINING = """
import duograph as ms, numpy as np
from duograph import nn, ops
net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Dense(128, 4))
ms.set_seed(1)
loss = nn.CrossEntropyLoss()
optimizer = nn.Adam(net.trainable_params(), 1e-2)
with_gradients = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

def step(x, y):
    value, gradients = with_gradients(x, y)
    optimizer(gradients)
    return value

rng = np.random.default_rng(0)
x = ms.Tensor(rng.standard_normal((6, 1, 8, 8)).astype(np.float32))
y = ms.Tensor(rng.integers(0, 4, 6).astype(np.int32))
compiled = ms.jit(step)
print([float(f(x, y).asnumpy()) for f in (step, compiled, compiled, step)])
"""


@needs_device
def test_training_on_the_weakest_device(tmp_path):
    """Eager and compiled steps run with the embedded profile's limits and groups of 32."""
    variables = environment("grid: embedded")
    variables["DUOGRAPH_OPENCL_WITHOUT"] += ",pragmas"
    variables["DUOGRAPH_OPENCL_LIMITS"] = "kernel_group=16"
    variables["DUOGRAPH_DEVICE"] = "OpenCL"
    program = tmp_path / "program.py"  # compiled functions need their source
    program.write_text(TRAINING)
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(program)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    losses = [float(w) for w in re.findall(r"[\d.]+", done.stdout)]
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == 4
