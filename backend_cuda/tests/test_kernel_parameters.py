"""The parameters of a kernel, read from what a compiler made, and launches that pass others."""

from __future__ import annotations

import functools
import struct

import duograph as ms
import numpy as np
import pytest
from cuda_architectures import CAPABILITIES
from cuda_harness import device
from duograph import ops
from duograph.dtype import float64, int32, int64
from duograph.errors import ArgumentValueError, DeviceError
from duograph_cuda.compiler import Nvrtc
from duograph_cuda.emulation.compiler import HostCompiler
from duograph_cuda.kernel_parameters import parameter_sizes

# Signature -> sizes of the parameters. Names that begin like another one are among them.
SIGNATURES = {
    "": (),
    "float *x": (8,),
    "const float *__restrict__ x, float *y": (8, 8),
    "float *x, int n": (8, 4),
    "float *x, char c, short s, long long q, double d": (8, 1, 2, 8, 8),
    "bool b, float *x": (1, 8),
    "three b, float *x": (24, 8),
    "float (*x)[4], int n": (8, 4),
    "float *a, float *b, float *c, float *d, float *e, float *f, float *g": (8,) * 7,
}
HEAD = "struct three { double a[3]; };\n"
SOURCE = HEAD + "".join(
    f'extern "C" __global__ void {name}({text}) {{}}\n'
    for k, text in enumerate(SIGNATURES)
    for name in (f"k{k}", f"k{k}_more")
)
PTX = (99, 9)  # no NVRTC knows it: it makes PTX


@functools.cache
def compiled(target):
    """Return a compiler for a target, and the image that it makes of SOURCE."""
    if target == "emulated":
        made = HostCompiler()
    else:
        pytest.importorskip("cuda.bindings.nvrtc", reason="needs the packages of duograph[cuda]")
        made = Nvrtc(target)
    return made, made.run(SOURCE)


@pytest.mark.parametrize("number", range(len(SIGNATURES)), ids=list(SIGNATURES))
@pytest.mark.parametrize("target", ["emulated", *CAPABILITIES, PTX], ids=str)
def test_the_image_tells_the_parameters(target, number):
    compiler, image = compiled(target)
    if target == PTX:
        assert compiler.suffix == ".ptx"
    wanted = list(SIGNATURES.values())[number]
    for name in (f"k{number}", f"k{number}_more"):
        assert compiler.parameters(image, name) == wanted


@pytest.mark.parametrize("target", ["emulated", CAPABILITIES[0], PTX], ids=str)
def test_a_kernel_that_is_not_there_has_no_parameters(target):
    compiler, image = compiled(target)
    assert compiler.parameters(image, "k") is None


def test_what_is_no_image_tells_nothing():
    _, image = compiled(CAPABILITIES[0])
    for damaged in (b"", b"\x7fELF", b"text", image[:70], image[:-500], image[: len(image) // 2]):
        assert parameter_sizes(damaged, "k1") in (None, (8,))


def test_parameters_in_a_form_of_the_future_are_unknown():
    _, image = compiled(CAPABILITIES[-1])
    known, other = (struct.pack("<BBH", 4, attribute, 12) for attribute in (0x17, 0xEE))
    assert parameter_sizes(image.replace(known, other), "k1") is None


# (buffers, scalars) of a launch of a kernel of each signature -> what the error says
LAUNCHES = {
    "no buffer": ("f32 *x", 0, (), "k: the kernel has 1 parameters; wanted 0"),
    "one more": ("f32 *x", 2, (), "k: the kernel has 1 parameters; wanted 2"),
    "none": ("", 1, (), "k: the kernel has 0 parameters; wanted 1"),
    "no scalar": ("f32 *x, i32 n", 1, (), "k: the kernel has 2 parameters; wanted 1"),
    "a wide scalar": (
        "f32 *x, i32 n", 1, [(int64, 3)],
        "k: parameter 1 of the kernel has 4 bytes; wanted the 8 of int64",
    ),
    "a narrow one": (
        "f32 *x, f64 n", 1, [(int32, 3)],
        "k: parameter 1 of the kernel has 8 bytes; wanted the 4 of int32",
    ),
    "no pointer": (
        "f32 *x, i32 n", 2, (),
        "k: parameter 1 of the kernel has 4 bytes; wanted the 8 of a pointer",
    ),
    "right": ("f32 *x, i32 n, f64 y", 1, [(int32, 3), (float64, 1.0)], None),
}  # fmt: skip


@pytest.mark.parametrize("case", LAUNCHES)
def test_a_launch_passes_what_the_kernel_takes(case):
    parameters, buffers, scalars, said = LAUNCHES[case]
    on = device()
    source = f"DG_KERNEL void k({parameters}) {{}}"
    module = on.build(on.dialect.prelude_for(source) + source)
    ones = (1, 1, 1)
    if said is None:
        on.launcher(module, "k", ones, ones, buffers, scalars)(on.copy_in(np.ones(2, np.float32)))
        return
    with pytest.raises(DeviceError) as error:
        on.launcher(module, "k", ones, ones, buffers, scalars)
    assert str(error.value).splitlines()[0] == said


OPERATORS = {
    "float *x, float *y": "scaled: the kernel has 2 parameters; wanted 3",
    "float *x, float *y, float *z, int n": "scaled: the kernel has 4 parameters; wanted 3",
    "float *x, int n, float *z": "scaled: parameter 1 of the kernel has 4 bytes; wanted the 8 of a",
    "": "scaled: the kernel has 0 parameters; wanted 3",
}


@pytest.mark.parametrize("mode", ["eager", "O0", "O2"])
@pytest.mark.parametrize("parameters", OPERATORS)
def test_an_operator_of_a_user_is_refused(parameters, mode):
    text = f'extern "C" __global__ void scaled({parameters}) {{}}'
    operator = ops.Custom(
        {"cuda": text},
        func_type="source",
        name="scaled",
        in_dtype=ms.float32,
        out_shape=lambda x, y: x,
        out_dtype=lambda x, y: x,
    )
    x = ms.Tensor(np.ones(4, np.float32), device="CUDA-emulated")
    run = operator if mode == "eager" else ms.jit(lambda a, b: operator(a, b), jit_level=mode)
    with pytest.raises(ArgumentValueError) as error:
        run(x, x)
    assert "'scaled' cannot be used; wanted a kernel 'scaled' with" in str(error.value)
    assert OPERATORS[parameters] in str(error.value)
