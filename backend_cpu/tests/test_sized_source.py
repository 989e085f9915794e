"""C sources that differ in numbers only are compiled once, and compute what each would compute."""

from __future__ import annotations

import duograph as ms
import duograph_cpu.toolchain as toolchain
import numpy as np
import pytest
from duograph import Tensor, ops
from duograph_cpu import sized_source
from duograph_cpu._native import ffi
from duograph_cpu.sized_source import Sized, build_sized, generalised, refuse


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """Give each test tables of its own."""
    monkeypatch.setattr(sized_source, "_forms", {})
    monkeypatch.setattr(sized_source, "_form_of", {})


@pytest.fixture
def compilations(monkeypatch, tmp_path):
    """Count the runs of the C compiler, with an empty disk cache."""
    monkeypatch.setenv("DUOGRAPH_CACHE_DIR", str(tmp_path))
    runs = []
    library = toolchain._library

    def counted(*arguments):
        runs.append(arguments)
        return library(*arguments)

    monkeypatch.setattr(toolchain, "_library", counted)
    return runs


KERNEL = """DG_KERNEL int scale(void **args, i64 begin, i64 end) {{
    const f32 *const x = args[0];
    f32 *const out = args[1];  /* model.py:12 */
    for (i64 i = begin; i < end; i++) out[i] = x[i % {n}] * {factor} + {n} / 2;
    return 0;
}}
"""


def test_only_literals_that_differ_become_variables() -> None:
    assert generalised(KERNEL.format(n=7, factor="1.5f")) is None  # the first of its form
    assert generalised(KERNEL.format(n=7, factor="1.5f")) is None
    found = generalised(KERNEL.format(n=9, factor="1.5f"))
    assert found is not None
    assert (found.ints, found.reals) == ((9, 9), ())
    assert "x[i % dg_size0] * 1.5f + dg_size1 / 2;" in found.text
    assert "args[1];  /* model.py:12 */" in found.text
    more = generalised(KERNEL.format(n=7, factor="0.1f"))
    assert more is not None
    assert (more.ints, more.reals) == ((7, 7), (0.1,))
    assert "const float dg_single0 = (float)dg_reals[0];" in more.text
    last = generalised(KERNEL.format(n=100, factor="2.f"))
    assert last is not None
    assert last.text == more.text
    assert (last.ints, last.reals) == ((100, 100), (2.0,))


# id: two sources of one form, of which no generalised one can be made
KEPT = {
    "outside of a function": ("int n = 3;\nDG_KERNEL int f(void) {\n}\n", 3),
    "no function": ("int n = 3;\n", 3),
    "too large an int": ("DG_KERNEL int f(void) {\nreturn 3;\n}\n", 3),
}


@pytest.mark.parametrize("case", KEPT)
def test_sources_that_are_kept(case: str) -> None:
    text, number = KEPT[case]
    other = 2**31 if case == "too large an int" else 8
    assert generalised(text) is None
    assert generalised(text.replace(str(number), str(other))) is None


# text, and whether a number in it is a literal
LITERALS = [
    ("x3 = y;", False), ("0x3;", False), ("3u;", False), ("3LL;", False), ("/* 3 */", False),
    ("// 3\n", False), ("\n#pragma unroll 3\n", False), ("x[3];", True), ("-3;", True),
    ("3.0f;", True), ("3.;", True), (".3;", True), ("3e5;", False), ("3.0e-5;", True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "literal"), LITERALS)
def test_what_is_a_literal(text: str, literal: bool) -> None:
    start, end = "DG_KERNEL int f(void) {\n", "\n}\n"
    generalised(start + text + end)
    assert (generalised(start + text.replace("3", "4") + end) is not None) is literal


def test_a_refused_form_is_compiled_as_it_is() -> None:
    generalised(KERNEL.format(n=7, factor="1.5f"))
    found = generalised(KERNEL.format(n=9, factor="1.5f"))
    assert found is not None
    refuse(found)
    assert generalised(KERNEL.format(n=9, factor="1.5f")) is None


def test_each_load_has_numbers_of_its_own(compilations) -> None:
    source = toolchain.Source(
        "__attribute__((visibility(\"default\"))) int dg_sizes[2];\n"
        "__attribute__((visibility(\"default\"))) double dg_reals[1];\n"
        "__attribute__((visibility(\"default\"))) int f(void **args, long begin, long end) {\n"
        "    *(double *)args[0] = dg_sizes[0] * 100 + dg_sizes[1] + dg_reals[0]; return 0; }\n",
        lambda text: "", "1",
    )  # fmt: skip
    sized = [Sized(source.text, (n, 2 * n), (n / 8,)) for n in (1, 3, 5)]
    loaded = [build_sized(source, each) for each in sized]
    out = ffi.new("double *")
    for n, library in zip((1, 3, 5), loaded, strict=True):
        assert not isinstance(library, toolchain.BuildFailure)
        assert library.function("f")(ffi.new("void *[]", [out]), 0, 1) == 0
        assert out[0] == n * 102 + n / 8
    assert len(compilations) == 1


# id: a function whose kernels depend on the varying size
FUNCTIONS = {
    "mean": lambda x: ops.tanh(x).mean(0) / x.shape[0],
    "softmax": lambda x: ops.softmax(x * 2, 0) + 1,
    "both axes": lambda x: (x * 2 - x.mean(1, keep_dims=True)).sum(1) + ops.amax(x, 0).sum(),
    "padded": lambda x: ops.pad(ops.relu(x), (1, 2)) * x.shape[0],
    "condition": lambda x: ops.where(x > 0, x, -x / x.shape[0]).T + 1,
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_kernels_of_varying_sizes_agree_and_are_compiled_a_few_times(case, compilations) -> None:
    f = ms.jit(FUNCTIONS[case], jit_level="O1")
    rng = np.random.default_rng(0)
    for n in (*range(9, 24), 64, 65, 200):
        x = Tensor(rng.standard_normal((n, 12)).astype(np.float32))
        want = FUNCTIONS[case](x)
        found = f(x)
        np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-5)
    assert f.cache_info().misses <= 5
    assert len(compilations) <= 8


def test_programs_of_one_shape_are_not_generalised() -> None:
    f = ms.jit(lambda x: ops.tanh(x).mean(0) / x.shape[0], jit_level="O1", dynamic=0)
    for n in (3, 4, 5, 6):
        f(ops.ones((n, 12)))
    assert not sized_source._forms
