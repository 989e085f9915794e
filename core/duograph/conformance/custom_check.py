"""Defines `check_custom`, which tests an operator that a user has written (`ops.Custom`).

Users call it. It looks for the same errors as PyTorch's `opcheck`: kernels that leave elements
unwritten or write to their inputs, types that are not as declared, wrong gradients, and results
that depend on how the operator is run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..autodiff.vmap import vmap
from ..backend import registry
from ..compiler.decorator import jit
from ..errors import (
    ArgumentError,
    BackendError,
    DTypeError,
    GradientError,
    UnsupportedOpError,
)
from ..ops.custom import Custom
from ..ops.joining import stack
from ..tensor import Tensor
from .compare import difference_of, snapshot
from .gradient_check import check_gradient

__all__ = ["check_custom"]

LEVELS = ("O0", "O1", "O2")
# Relative and absolute difference allowed between devices, and between eager and fused results.
NEAR = 1e-5
# Blocks of memory of the size of each result that are filled before a call: at least and at most so
# many, and otherwise of so many bytes. A process that has run for long keeps many free blocks.
FEWEST, MOST, BYTES = 64, 1024, 1 << 22
# Words of 4 bytes behind a buffer that an allocator may add, and that are filled too.
BEYOND = 2
# Contents of this memory, as int32: all bytes are 0, 255, 0x55 or 0xaa.
CONTENTS = (0, -1, 0x55555555, -0x55555556)
AGAIN = "another call (are all elements written, and none read beyond the inputs?)"


def check_custom(operator: Custom, *inputs: Tensor) -> list[str]:
    """Test an operator that a user has written, on given inputs.

    The operator runs several times, so its side effects, if any, occur several times.

    Args:
        operator: an `ops.Custom`.
        inputs: Tensors; small ones, because a finite difference is computed for each element.

    Returns:
        What was tested, in words: repeated calls with memory of other contents, unchanged inputs,
        compiled code at O0, O1 and O2, `vmap`, the gradient (if there is one), and other devices of
        this machine for which there is a kernel.

    Raises:
        BackendError: the results of two calls, of compiled code, of `vmap` or of another device
            differ, an input was changed, or a function with the operator is not compiled. The
            message says where.
        GradientError: the gradient differs from finite differences.

    Examples:
        >>> import duograph as ms
        >>> swish = ms.ops.Custom("x / (1 + exp(-x))", func_type="expression")
        >>> "the gradient" in ms.check_custom(swish, ms.Tensor([0.5, -1.0]))
        True
    """
    if not isinstance(operator, Custom):
        raise ArgumentError(f"check_custom: got {type(operator).__name__}; wanted an ops.Custom")
    if not inputs or not all(isinstance(x, Tensor) for x in inputs):
        raise ArgumentError("check_custom: got inputs that are no Tensors; wanted at least one")
    want = _repeated(operator, inputs)
    done = ["repeated calls", "unchanged inputs"]
    exact = operator.func_type != "expression"  # a fused expression may round differently
    for level in LEVELS:
        _check_compiled(operator, inputs, level, want, exact)
        done.append(f"compiled at {level}")
    _check_vmap(operator, inputs, want)
    done.append("vmap")
    if _check_derivative(operator, inputs):
        done.append("the gradient")
    return done + _check_devices(operator, inputs, want)


def _repeated(operator: Custom, inputs: Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Call an operator repeatedly, with different contents of free memory; return its results.

    An operator that leaves elements of its results unwritten then returns different results. So
    does one that reads beyond its inputs, which are copied to such memory for each call. The return
    value is a snapshot (`compare.snapshot`) of the first of these calls.

    Raises BackendError if two calls differ, or if a call changed an input.
    """
    before = snapshot(list(inputs))
    first = operator(*inputs)
    results = first if isinstance(first, tuple) else (first,)
    words = {max(1, -(-t.nbytes // 4)) + more for t in (*results, *inputs) for more in (0, BEYOND)}
    del results
    device = str(inputs[0].device)
    del first
    found = []
    for content in CONTENTS * 2:
        # freed at once, so that the results of the next call are likely to get this memory
        blocks = [Tensor(np.full(n, content, np.int32), device=device) for n in words]
        filled = [
            block.copy()  # memory of the device's allocator, as results have
            for block in blocks
            for _ in range(min(max(FEWEST, BYTES // block.nbytes), MOST))
        ]
        del filled
        given = [x.copy() for x in inputs]
        found.append(operator(*given))
        _agree("its inputs after the call", given, before, exact=True)
    want = snapshot(found[0])
    for other in found[1:]:
        _agree(AGAIN, other, want, exact=True)
    return want


def _agree(what: str, got: object, want: object, exact: bool) -> None:
    """Raise BackendError if the results `got` differ from `want`; `what` names the run."""
    text = difference_of(want, snapshot(got), what, None if exact else NEAR)
    if text is not None:
        raise BackendError(f"check_custom: {text}")


def _check_compiled(
    operator: Custom, inputs: Sequence[Tensor], level: str, want: object, exact: bool
) -> None:
    """Raise BackendError if the operator is not compiled at a level, or returns something else."""
    compiled = jit(operator, jit_level=level)
    _agree(f"compiled at {level}", compiled(*inputs), want, exact)
    reason = compiled.explain(*inputs).line_by_line
    if reason:
        raise BackendError(f"check_custom: not compiled at {level}: {reason}")


def _check_vmap(operator: Custom, inputs: Sequence[Tensor], want: object) -> None:
    found = vmap(operator.__call__)(*[stack([x, x]) for x in inputs])
    second = tuple([t[1] for t in found]) if isinstance(found, tuple) else found[1]
    _agree("vmap", second, want, exact=True)


def _check_derivative(operator: Custom, inputs: Sequence[Tensor]) -> bool:
    """Compare an operator's gradient with finite differences; return False if it has none."""
    floating = any(x.dtype.kind in "fc" for x in inputs)
    if not floating or (operator.bprop is None and operator.func_type != "expression"):
        return False
    dtypes = [x.dtype for x in inputs]

    def own(*xs: Tensor) -> object:
        # finite differences are computed in float64 where a function takes it; a kernel may not
        if operator.kernel is not None and [x.dtype for x in xs] != dtypes:
            raise DTypeError("check_custom: the kernel is for the dtypes of the inputs alone")
        return operator(*xs)

    found = check_gradient(own, inputs, order=1)
    if not found:
        raise GradientError(f"check_custom: {found}")
    return True


def _check_devices(operator: Custom, inputs: Sequence[Tensor], want: object) -> list[str]:
    """Compare results with those of other devices that can run the kernel; return their names.

    The other devices are all installed devices that are available here and for which the operator
    has a kernel.
    """
    if operator.kernel is None:
        return []
    done = []
    own = str(inputs[0].device)
    for name, entry in registry.entries().items():
        if own.startswith(f"{name}:") or registry.problem_of(entry) is not None:
            continue
        dtypes = registry.backend(name).dtypes
        if not all(x.dtype in dtypes for x in inputs):
            continue
        try:
            found = operator(*[x.to(name) for x in inputs])
        except UnsupportedOpError:
            continue  # it has no language of this device
        _agree(name, found, want, exact=False)
        done.append(f"the same on {name}")
    return done
