"""Calls of compiled functions: operands, results, types, error codes, threads."""

import threading

import numpy as np
import pytest
from compiling import EXPORT, floats, needs_compiler, source
from duograph.dtype import bool_, float64
from duograph.errors import IndexRangeError
from duograph.types import TensorType
from duograph_cpu import region_calls, toolchain
from harness import CPU_BACKEND

pytestmark = pytest.mark.usefixtures("fresh")


@needs_compiler
@pytest.mark.parametrize("results", [1, 2])
@pytest.mark.parametrize("operands", [0, 1, 2, 3, 6, 7, 50])
@pytest.mark.parametrize("n", [0, 1, 3, 5000, 300_001])
def test_calls(operands, results, n):
    terms = " + ".join(f"x{i}[i] * {i + 1}" for i in range(operands)) or "i"
    library = toolchain.build(source(terms, operands, results))
    call = region_calls.make_call(
        library.function("f"), n, 1000, operands, [floats(n)] * results, "sum"
    )
    arrays = [
        np.random.default_rng(i).integers(0, 9, n).astype(np.float32) for i in range(operands)
    ]
    want = sum((x * (i + 1) for i, x in enumerate(arrays)), np.float32(0))
    if operands == 0:
        want = np.arange(n, dtype=np.float32)
    outs = call(*[CPU_BACKEND.copy_in(a, 0) for a in arrays])
    outs = outs if isinstance(outs, tuple) else (outs,)
    assert len(outs) == results
    for k, out in enumerate(outs):
        found = CPU_BACKEND.copy_out(out, (n,), np.dtype(np.float32), 0)
        np.testing.assert_array_equal(found, want * (k + 1))


@needs_compiler
@pytest.mark.parametrize("operands", [1, 2, 3, 9])
def test_return_codes_raise(operands):
    """The greatest code of all chunks."""
    library = toolchain.build(
        f"{EXPORT}int f(void **args, long begin, long end) {{ return begin <= 7777 && 7777 < "
        "end ? 2 : 0; }\n"
        f"{EXPORT}int g(void **args, long begin, long end) {{ return begin / 1000; }}\n"
        f"{EXPORT}int h(void **args, long begin, long end) {{ return 1; }}\n"
    )
    handles = [CPU_BACKEND.copy_in(np.zeros(3, np.float32), 0)] * operands

    def make(name, n, **more):
        function = library.function(name)
        return region_calls.make_call(function, n, 10, operands, [floats(3)], "region", **more)

    for _ in range(20):
        with pytest.raises(IndexRangeError, match="region: an index is out of range"):
            make("f", 10_000)(*handles)
    make("f", 7000)(*handles)
    with pytest.raises(RuntimeError, match=r"region: the compiled function returned code 9\d\b"):
        make("g", 100_000)(*handles)
    with pytest.raises(MemoryError):
        make("h", 3)(*handles)
    seen = []

    def failed(code, given):
        seen.append((code, len(given)))
        return "another way"

    assert make("f", 10_000, failed=failed)(*handles) == "another way"
    assert seen == [(2, operands)]


@needs_compiler
def test_results_of_several_types():
    library = toolchain.build(
        f"{EXPORT}int f(void **args, long begin, long end) {{\n"
        "    const float *x = args[0]; double *y = args[1]; unsigned char *z = args[2];\n"
        "    for (long i = begin; i < end; i++) { y[i] = x[i]; z[i] = x[i] > 0; }\n"
        "    return 0;\n}\n"
    )
    results = [TensorType.of((2, 1), float64), TensorType.of((2,), bool_)]
    call = region_calls.make_call(library.function("f"), 2, 9, 1, results, "two")
    y, z = call(CPU_BACKEND.copy_in(np.array([-1.5, 2], np.float32), 0))
    assert CPU_BACKEND.copy_out(y, (2, 1), np.dtype(float), 0).tolist() == [[-1.5], [2]]
    assert CPU_BACKEND.copy_out(z, (2,), np.dtype(bool), 0).tolist() == [False, True]


@needs_compiler
def test_calls_from_threads():
    library = toolchain.build(source(" + ".join(f"x{i}[i]" for i in range(20)), 20))
    n = 50_000
    call = region_calls.make_call(library.function("f"), n, 1000, 20, [floats(n)], "sum")
    wrong = []

    def work(number):
        handles = [CPU_BACKEND.copy_in(np.full(n, number, np.float32), 0)] * 20
        for _ in range(50):
            out = CPU_BACKEND.copy_out(call(*handles), (n,), np.dtype(np.float32), 0)
            if not (out == 20 * number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
