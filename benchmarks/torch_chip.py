"""The simulated chip of `examples/custom_device.py` as a device of torch, in Python alone.

torch has one device type for a backend from outside (`PrivateUse1`), and lets Python fill it:
kernels are functions that `torch.library` registers for the ops of torch's dispatcher. A device
has to have a kernel for most of the ops that a training calls, those of gradients and of the
optimiser included. `Ops` has them for the ops of this example; each runs kernels of the chip, which
are the same as in the example: the same NumPy functions, rounding and cycles.

The memory of a tensor is a NumPy array. It is an attribute of the tensor's storage, not of the
tensor, because autograd saves a result as a new tensor that shares the storage.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.utils import backend_registration

NAME = "chip"
DTYPES = {np.dtype(np.float32): torch.float32, np.dtype(np.int64): torch.int64}
OF_TORCH = {dtype: numpy for numpy, dtype in DTYPES.items()}
MEAN = 1  # the number of the reduction "mean" in torch's dispatcher
ZERO, MINUS_ONE = np.zeros((), np.float32), np.array(-1, np.float32)


def scatter_set(x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """A copy of a vector with other elements at some indices."""
    result = x.copy()
    result[indices] = updates
    return result


class Chip:
    """The kernels that the training needs; `cycles` and `products` count as in the example."""

    def __init__(self, example: ModuleType) -> None:
        self.example = example
        self.bits = 8
        self.cycles: Counter[str] = Counter()
        self.products = 0
        self.cost = functools.cache(self.cost_of)
        self.rules: dict[str, Callable[..., Any]] = {
            "matmul": self.matmul, "add": np.add, "sub": np.subtract, "mul": np.multiply,
            "div": np.divide, "maximum": np.maximum, "exp": np.exp, "log": np.log,
            "less": np.less, "equal": np.equal, "logical_not": np.logical_not,
            "select": np.where, "reduce_sum": np.sum, "reduce_max": np.max, "gather": np.take,
            "scatter_set": scatter_set, "fill": np.full, "iota": np.arange,
            "cast": np.ndarray.astype, "strided_copy": np.array,
        }  # fmt: skip

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        rounded = self.example.rounded
        return np.matmul(rounded(a, self.bits), rounded(b, self.bits))

    def run(self, kernel: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
        """Run a kernel on arrays; return its result, and count its cycles."""
        with np.errstate(all="ignore"):  # floating arithmetic never raises on a device
            result = self.rules[kernel](*operands, **attributes)
        group, cycles, products = self.cost(kernel, result.shape, *[x.shape for x in operands])
        self.cycles[group] += cycles
        self.products += products
        return result

    def cost_of(self, kernel: str, *shapes: tuple[int, ...]) -> tuple[str, int, int]:
        """Group, cycles and products of a kernel by the shapes of its result and its operands."""
        result, *types = [SimpleNamespace(shape=s, size=math.prod(s)) for s in shapes]
        if kernel == "matmul":
            return kernel, *self.example.matmul_cost(types, result)
        group = self.example.GROUPS.get(kernel, "vector unit")
        return group, self.example.vector_cost(SimpleNamespace(name=kernel), types, result), 0


def memory(tensor: torch.Tensor) -> np.ndarray:
    """The array that holds the elements of a tensor of the chip."""
    return tensor.untyped_storage().memory


def tensor_of(array: Any) -> torch.Tensor:
    """A tensor of the chip whose memory is an array."""
    array = np.asarray(array)
    tensor = torch._C._acc.create_empty_tensor(array.shape, DTYPES[array.dtype])
    tensor.untyped_storage().memory = array
    return tensor


def refuse(**arguments: tuple[Any, Any]) -> None:
    """Raise NotImplementedError unless each argument has the one value that the chip supports.

    An argument is given as (value, supported value).
    """
    for name, (value, supported) in arguments.items():
        if value != supported:
            raise NotImplementedError(
                f"chip: got {name}={value}, wanted {supported}; extend the op in torch_chip.Ops"
            )


class Ops:
    """The ops of torch that the training calls; each runs kernels of the chip on NumPy arrays."""

    names = (
        "empty.memory_format", "empty_strided", "_copy_from", "_local_scalar_dense", "fill_.Scalar",
        "view", "t", "mm", "addmm", "sum.dim_IntList", "relu", "threshold_backward", "_log_softmax",
        "_log_softmax_backward_data", "nll_loss_forward", "nll_loss_backward", "_fused_sgd_",
    )  # fmt: skip

    def __init__(self, chip: Chip) -> None:
        self.run = chip.run

    def register(self) -> torch.library.Library:
        """Make the chip a device of torch for as long as the result lives."""
        backend_registration._setup_privateuseone_for_python_backend(NAME)
        library = torch.library.Library("aten", "IMPL", "PrivateUse1")
        for name in self.names:
            library.impl(name, getattr(self, name.split(".")[0]))
        return library

    def empty(self, size, dtype=None, **options):
        return tensor_of(np.empty(size, OF_TORCH[dtype or torch.get_default_dtype()]))

    def empty_strided(self, size, stride, dtype=None, **options):
        return self.empty(size, dtype)  # a tensor of the chip has no strides but those of NumPy

    def _copy_from(self, source, target, non_blocking=False):
        if target.device.type != NAME:
            return target.copy_(torch.from_numpy(memory(source)))
        on_chip = source.device.type == NAME
        found = self.run("strided_copy", memory(source)) if on_chip else source.numpy()
        memory(target)[...] = found
        return target

    def _local_scalar_dense(self, x):
        return memory(x).item()

    def fill_(self, x, value):
        x = memory(x)
        x[...] = self.run("fill", shape=x.shape, fill_value=value, dtype=x.dtype)

    def view(self, x, size):
        return tensor_of(memory(x).reshape(size))

    def t(self, x):
        return tensor_of(memory(x).T)  # costs nothing: the chip's matmul reads either order

    def mm(self, a, b):
        return tensor_of(self.run("matmul", memory(a), memory(b)))

    def addmm(self, bias, a, b, *, beta=1, alpha=1):
        refuse(beta=(beta, 1), alpha=(alpha, 1))
        return tensor_of(self.run("add", self.run("matmul", memory(a), memory(b)), memory(bias)))

    def sum(self, x, dim, keepdim=False, *, dtype=None):
        refuse(dtype=(dtype, None))
        return tensor_of(self.run("reduce_sum", memory(x), axis=tuple(dim), keepdims=keepdim))

    def relu(self, x):
        return tensor_of(self.run("maximum", memory(x), ZERO))

    def threshold_backward(self, grad, x, threshold):
        active = self.run("less", np.float32(threshold), memory(x))
        return tensor_of(self.run("select", active, memory(grad), ZERO))

    def _log_softmax(self, x, dim, half_to_float):
        refuse(half_to_float=(half_to_float, False))
        run, x = self.run, memory(x)
        x = run("sub", x, run("reduce_max", x, axis=dim, keepdims=True))
        total = run("reduce_sum", run("exp", x), axis=dim, keepdims=True)
        return tensor_of(run("sub", x, run("log", total)))

    def _log_softmax_backward_data(self, grad, output, dim, input_dtype):
        run, grad = self.run, memory(grad)
        total = run("reduce_sum", grad, axis=dim, keepdims=True)
        return tensor_of(run("sub", grad, run("mul", run("exp", memory(output)), total)))

    def find(self, x, target, ignore_index):
        """Which labels count, and the flat index of the element of each label in a matrix."""
        run, (rows, columns) = self.run, x.shape
        counts = run("logical_not", run("equal", target, np.int64(ignore_index)))
        starts = run("mul", run("iota", start=0, stop=rows), np.int64(columns))
        return counts, run("add", starts, run("select", counts, target, np.int64(0)))

    def nll_loss_forward(self, x, target, weight, reduction, ignore_index):
        refuse(weight=(weight, None), reduction=(reduction, MEAN))
        run, x = self.run, memory(x)
        counts, index = self.find(x, memory(target), ignore_index)
        losses = run("mul", run("gather", x.reshape(-1), index), MINUS_ONE)
        total = run("reduce_sum", run("select", counts, losses, ZERO))
        count = run("reduce_sum", run("cast", counts, dtype=np.float32))
        return tensor_of(run("div", total, count)), tensor_of(count)

    def nll_loss_backward(self, grad, x, target, weight, reduction, ignore_index, total_weight):
        refuse(weight=(weight, None), reduction=(reduction, MEAN))
        run, x = self.run, memory(x)
        counts, index = self.find(x, memory(target), ignore_index)
        each = run("mul", run("div", memory(grad), memory(total_weight)), MINUS_ONE)
        zeros = run("fill", shape=x.size, fill_value=0, dtype=x.dtype)
        result = run("scatter_set", zeros, index, run("select", counts, each, ZERO))
        return tensor_of(result.reshape(x.shape))

    def _fused_sgd_(self, weights, grads, momenta, *, momentum, lr, is_first_step, **others):
        plain = {"weight_decay": 0, "dampening": 0, "nesterov": False, "maximize": False}
        plain |= {"grad_scale": None, "found_inf": None}
        refuse(**{name: (value, plain[name]) for name, value in others.items()})
        run, momentum, lr = self.run, np.float32(momentum), np.float32(lr)
        for weight, grad, mean in zip(weights, grads, momenta, strict=True):
            weight, grad, mean = memory(weight), memory(grad), memory(mean)
            if is_first_step:
                mean[...] = run("strided_copy", grad)
            else:
                run("add", run("mul", mean, momentum, out=mean), grad, out=mean)
            run("sub", weight, run("mul", lr, mean), out=weight)
