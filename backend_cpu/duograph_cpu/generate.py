"""Generates the C source of the elementwise kernels of all ops, when the backend is built.

`build.py` calls `generate`. It writes one C function for each op with a `scalar` rule and each
dtype, which computes the elements along the last axis (a row). Kernels that compilers can vectorise
are compiled for baseline, AVX2 and AVX-512 from one source, and the processor's variant is selected
at the first call; the others are compiled for the baseline only. This module must not be imported
at run time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import duograph.ops  # noqa: F401  (fills the op table)
from duograph.backend.codegen import C, compute_dtype, print_function
from duograph.backend.codegen.dialect import SUFFIX
from duograph.backend.codegen.expression import Expr
from duograph.backend.codegen.printer import is_heavy
from duograph.backend.codegen.scalar_kernels import ScalarKernel, scalar_kernels
from duograph.dtype import COMPLEX, DType, float64

HERE = Path(__file__).resolve().parent

# Functions with loops or calls of the C library: wider vectors do not speed them up.
LIBRARY = {"fmod", "remainder", "floor_divide", "trunc_divide", "lgamma", "nextafter"}
LIBRARY_INT = {"pow"}
# Kernels in one file: gcc's time grows slightly faster than linearly.
PER_FILE = 100

ISAS = {
    "base": ("", ""),
    "avx2": ("avx2,fma,f16c", "#define DG_HAS_FMA 1\n"),
    "avx512": (
        "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,prefer-vector-width=512",
        "#define DG_HAS_FMA 1\n",
    ),
}

# gcc contracts a*b + c across statements by default; results must not depend on the code around
# them.
NO_CONTRACTION = """\
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif
"""

# gcc copies a loop for each value of a condition that does not change in it. On x86 that is 140 KB
# in the baseline variants of hot kernels, which only processors without AVX2 run.
NO_COPIES_OF_LOOPS = """\
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC optimize("no-unswitch-loops")
#endif
"""


def _nodes(e: Expr) -> Iterator[Expr]:
    """Yield all nodes of a scalar expression tree, the root first."""
    yield e
    for a in e.args:
        yield from _nodes(a)


def _is_hot(kernel: ScalarKernel) -> bool:
    """Return whether an elementwise kernel is worth compiling for wider vectors (AVX2, AVX-512)."""
    if kernel.result in COMPLEX or any(d in COMPLEX for _, d in kernel.operands):
        return False
    for e in _nodes(kernel.expression):
        if e.op in LIBRARY:
            return False
        if e.op in LIBRARY_INT and e.dtype.is_integer:
            return False
        if e.dtype is float64 and e.op not in _PLAIN:
            return False
    return True


_PLAIN = {
    "input", "const", "cast", "where", "neg", "abs", "sqrt", "rsqrt", "copysign", "floor", "ceil",
    "trunc", "round", "+", "-", "*", "/",
}  # fmt: skip


def _patterns(n: int) -> list[int]:
    """Return the operand patterns for which a kernel of `n` operands has a specialised loop.

    A pattern is a bit mask of the operands that are not broadcast along a row.
    """
    if n == 1:
        return [1]
    if n == 2:
        return [3, 1, 2]
    if n == 3:
        return [7, 3, 5]
    return [2**n - 1]


def print_kernel(kernel: ScalarKernel, isa: str) -> str:
    """Return the C source of an elementwise kernel for one instruction set (a key of `ISAS`).

    The source has one function that computes an element, and one that computes a row.
    """
    name = f"{kernel.name}_{isa}"
    real = kernel.operands[-1][1]
    parameters = [*kernel.operands, *((p, compute_dtype(real)) for p in kernel.parameters)]
    text = print_function(C, f"{name}_at", parameters, kernel.expression)
    lines = [f"static void {name}(void **p, i64 n, int moving, const f64 *parameters) {{"]
    for i, (x, d) in enumerate(kernel.operands):
        lines.append(f"    const {SUFFIX[d]} *{x} = p[{i}];")
    count = len(kernel.operands)
    lines.append(f"    {SUFFIX[kernel.result]} *result = p[{count}];")
    for i, p in enumerate(kernel.parameters):
        c = SUFFIX[compute_dtype(real)]
        lines.append(f"    const {c} {p} = ({c})parameters[{i}];")
    if not kernel.parameters:
        lines.append("    (void)parameters;")
    patterns = _patterns(count)
    if count == 1:
        lines.append("    (void)moving;")
    extra = list(kernel.parameters)
    for k, pattern in enumerate(patterns):
        indent = "    "
        if count > 1:
            word = "if" if k == 0 else "} else if"
            lines.append(f"    {word} (moving == {pattern}) {{")
            indent = "        "
        args = []
        for i, (x, d) in enumerate(kernel.operands):
            if pattern >> i & 1:
                args.append(C.load(d, f"{x}[i]"))
            else:
                lines.append(
                    f"{indent}const {SUFFIX[compute_dtype(d)]} {x}0 = {C.load(d, f'*{x}')};"
                )
                args.append(f"{x}0")
        lines += _loop(indent, name, [*args, *extra], kernel.result)
    if count > 1 and len(patterns) < 2**count - 1:
        lines.append("    } else {")
        for i, (x, _) in enumerate(kernel.operands):
            lines.append(f"        const i64 {x}_step = moving >> {i} & 1;")
        args = [C.load(d, f"{x}[i * {x}_step]") for x, d in kernel.operands]
        lines += _loop("        ", name, [*args, *extra], kernel.result, independent=False)
    if count > 1:
        lines.append("    }")
    lines.append("}")
    return text + "\n".join(lines) + "\n"


def _loop(
    indent: str, name: str, args: Sequence[str], result: DType, independent: bool = True
) -> list[str]:
    call = C.store(result, f"{name}_at({', '.join(args)})")
    head = [f"{indent}DG_INDEPENDENT"] if independent else []
    return [*head, f"{indent}for (i64 i = 0; i < n; i++) result[i] = {call};"]


def _source(kernels: Sequence[ScalarKernel], isa: str, seldom: bool) -> str:
    """Return the C source of kernels for an instruction set, a key of `ISAS`.

    `seldom` says that x86 processors have faster variants, so that size matters more than speed.
    """
    target, define = ISAS[isa]
    parts = ["/* Printed by generate.py from the op table. */\n"]
    if target:
        parts.append(
            "#if defined(__x86_64__) || defined(__i386__)\n"
            "#ifdef __clang__\n"
            "#pragma clang attribute "
            f'push(__attribute__((target("{target.split(",prefer")[0]}"))), '
            "apply_to = function)\n"
            "#else\n"
            f'#pragma GCC target("{target}")\n'
            "#endif\n"
        )
    parts.append(NO_CONTRACTION + (NO_COPIES_OF_LOOPS if seldom else ""))
    parts.append(define + '#include "elementwise_math.h"\n')
    parts.append("typedef void (*dg_row)(void **, i64, int, const f64 *);\n\n")
    parts += [print_kernel(k, isa) + "\n" for k in kernels]
    for k in kernels:
        parts.append(f"const dg_row dg_row_{k.name}_{isa} = {k.name}_{isa};\n")
    if target:
        parts.append("#ifdef __clang__\n#pragma clang attribute pop\n#endif\n#endif\n")
    return "".join(parts)


def _table(kernels: Sequence[ScalarKernel], hot: Collection[str]) -> str:
    """Return the C source of `dg_elementwise_find`, which looks an elementwise kernel up by name.

    The function selects the variant for the processor's instruction set. `hot` has the names of the
    kernels that are compiled for all instruction sets.
    """
    parts = [
        "/* Printed by generate.py from the op table. */\n",
        '#include "common.h"\n#include "elementwise.h"\n\n',
        "#if defined(__x86_64__) || defined(__i386__)\n#define VECTORS(name) "
        "{&dg_row_##name##_base, &dg_row_##name##_avx2, &dg_row_##name##_avx512}\n"
        "#else\n#define VECTORS(name) {&dg_row_##name##_base, 0, 0}\n#endif\n"
        "#define BASE(name) {&dg_row_##name##_base, 0, 0}\n\n",
    ]
    for k in kernels:
        suffixes = ISAS if k.name in hot else ["base"]
        names = ", ".join(f"dg_row_{k.name}_{i}" for i in suffixes)
        parts.append(f"extern const dg_row {names};\n")
    parts.append(
        "\nstatic const struct {\n    const char *name;\n    int heavy;\n    const dg_row "
        "*rows[3];\n"
        "} kernels[] = {\n"
    )
    for k in sorted(kernels, key=lambda k: k.name):
        macro = "VECTORS" if k.name in hot else "BASE"
        parts.append(f'    {{"{k.name}", {int(is_heavy(k.expression))}, {macro}({k.name})}},\n')
    parts.append(
        """};

dg_row dg_elementwise_find(const char *name, int *heavy) {
    int low = 0, high = (int)(sizeof kernels / sizeof *kernels) - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        int order = strcmp(name, kernels[middle].name);
        if (order == 0) {
            *heavy = kernels[middle].heavy;
            for (int isa = dg_isa(); isa > 0; isa--)
                if (kernels[middle].rows[isa]) return *kernels[middle].rows[isa];
            return *kernels[middle].rows[0];
        }
        if (order < 0) high = middle - 1;
        else low = middle + 1;
    }
    return 0;
}
"""
    )
    return "".join(parts)


def _write(path: Path, text: str) -> Path:
    """Write a text file unless it already has this content; return its path.

    A file that is not written again need not be compiled again.
    """
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def generate(folder: str | Path) -> tuple[str, list[Path]]:
    """Write the C sources of all elementwise kernels into `folder`.

    Returns (C declarations for cffi, paths of the sources).
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kernels = list(scalar_kernels())
    hot = [k for k in kernels if _is_hot(k)]
    hot_names = {k.name for k in hot}
    rest = [k for k in kernels if k.name not in hot_names]
    _write(folder / "elementwise_math.h", C.prelude())
    sources = []
    for isa in ISAS:
        for stem, group in (("hot", hot), ("rest", rest)):
            if stem == "rest" and isa != "base":
                continue
            for i in range(0, len(group), PER_FILE):
                path = folder / f"elementwise_{stem}{i // PER_FILE}_{isa}.c"
                seldom = stem == "hot" and isa == "base"
                sources.append(_write(path, _source(group[i : i + PER_FILE], isa, seldom)))
    sources.append(_write(folder / "elementwise_table.c", _table(kernels, hot_names)))
    for stale in set(folder.glob("*.c")) - set(sources):
        stale.unlink()
    return (HERE / "native" / "elementwise.h").read_text(), sources


def fingerprint(folder: str | Path) -> str:
    """Return a hash of the C files in a folder, by which tests detect changed kernels."""
    digest = hashlib.sha256()
    for path in sorted(Path(folder).glob("*.[ch]")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
