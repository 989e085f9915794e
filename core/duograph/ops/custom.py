"""User-defined operators: kernel source, a prebuilt library, an expression, or Python code.

Users construct `Custom`. A kernel becomes a node of the op `custom` in a graph, with a
`CustomKernel` as its attribute; the backends that know the kernel's language build and launch it.
An expression becomes calls of the framework's ops, which every backend can compute.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ..autodiff.custom import custom_gradient
from ..autodiff.rule_checks import check_function
from ..context import settings
from ..dtype import DType, as_dtype
from ..effects import IO
from ..errors import (
    ArgumentError,
    ArgumentValueError,
    DTypeError,
    GradientError,
    ShapeError,
    UnsupportedOpError,
)
from ..op import op
from ..op_calls import dispatch
from ..option_checks import check_options
from ..tensor import Tensor
from ..tracebacks import called_at, defined_at, short
from ..types import TensorType
from .expressions import expression_function
from .primitive import Primitive

__all__ = ["Custom", "CustomKernel"]

LANGUAGES = ("c", "opencl", "cuda")
# The options, beside `func` and `func_type`, that have a meaning for each `func_type`.
_RESULTS = frozenset({"out_shape", "out_dtype", "bprop"})
OPTIONS = {
    "pyfunc": _RESULTS,
    "hybrid": _RESULTS,
    "source": _RESULTS | {"in_dtype", "effects", "name", "work_items"},
    "aot": _RESULTS | {"in_dtype", "effects"},
    "expression": frozenset[str](),
}


@dataclasses.dataclass(frozen=True, eq=False)
class CustomKernel:
    """A user's kernel and the rules for the types of its results.

    Attributes:
        name: the name of the kernel's function, in every language.
        sources: the source code by language: "c", "opencl", "cuda".
        library: path of a shared library that has the function, or None if there are sources.
        out_shape, out_dtype: shapes and dtypes of the results; see `Custom`.
        gradient: the user's function `bprop(*inputs, out, dout)`, or None.
        work_items: number of work items on a GPU, or a function of the input shapes that returns
            it; None is one for each element of the first result.
        in_dtype: the dtype of all inputs, or a sequence with one for each; None or "any" allows
            all.
    """

    name: str
    sources: Mapping[str, str]
    library: str | None
    out_shape: Any
    out_dtype: Any
    gradient: Callable[..., object] | None
    work_items: object
    in_dtype: Any = None

    def result_types(self, types: Sequence[TensorType]) -> TensorType | tuple[TensorType, ...]:
        """Return the type of the only result, or a tuple of the types of several.

        `types` are the types of the inputs.

        Raises:
            ArgumentError: `out_shape` or `out_dtype` has an invalid value or length.
            DTypeError: an input has another dtype than `in_dtype` says.
        """
        self._check_inputs(types)
        shapes = _ruled(self.out_shape, [t.shape for t in types])
        dtypes = _ruled(self.out_dtype, [t.dtype for t in types])
        several = isinstance(dtypes, (tuple, list))
        if _is_shape(shapes):
            shapes = [shapes] * (len(dtypes) if several else 1)
        if not isinstance(shapes, (tuple, list)) or not all(map(_is_shape, shapes)):
            raise ArgumentError(
                f"Custom: got out_shape={shapes!r}; wanted a tuple of ints, or one for each result"
            )
        made = [as_dtype(d) for d in (dtypes if several else [dtypes] * len(shapes))]
        if len(made) != len(shapes):
            raise ArgumentError(
                f"Custom: got {len(shapes)} shapes and {len(made)} dtypes of results; wanted one "
                "of each for every result"
            )
        found = [TensorType.of(tuple(s), d) for s, d in zip(shapes, made, strict=True)]
        return found[0] if len(found) == 1 else tuple(found)

    def _check_inputs(self, types: Sequence[TensorType]) -> None:
        """Raise an error unless the number and dtypes of the inputs are those of `in_dtype`."""
        if self.in_dtype is None or self.in_dtype == "any":
            return
        several = isinstance(self.in_dtype, (tuple, list))
        wanted = self.in_dtype if several else [self.in_dtype] * len(types)
        if len(wanted) != len(types):
            raise ArgumentError(
                f"Custom: the operator {self.name!r} got {len(types)} inputs; wanted {len(wanted)}"
            )
        for i, (t, dtype) in enumerate(zip(types, wanted, strict=True)):
            if t.dtype is not as_dtype(dtype):
                raise DTypeError(
                    f"Custom: input {i} of {self.name!r} has dtype {t.dtype.name}; wanted "
                    f"{as_dtype(dtype).name}"
                )

    def items(self, types: Sequence[TensorType], results: Sequence[TensorType]) -> int:
        """Return the number of work items of a launch on a GPU.

        `types` are the types of the inputs, `results` those of the results.
        """
        if self.work_items is None:
            return results[0].size
        try:
            found = _ruled(self.work_items, [t.shape for t in types])
        except Exception as error:
            raise ArgumentError(
                f"Custom: work_items{defined_at(self.work_items)} of {self.name!r} raised "
                f"{type(error).__name__}: {error}"
            ) from error
        if not isinstance(found, (int, np.integer)) or found < 0:
            raise ArgumentError(
                f"Custom: got work_items={found!r} for {self.name!r}; wanted an int from 0 on, or "
                "a function of the input shapes that returns one"
            )
        return int(found)

    @property
    def languages(self) -> str:
        """The form of the kernel for error messages, such as "source in c, opencl"."""
        return "a library for the CPU" if self.library else "source in " + ", ".join(self.sources)


def _ruled(rule: object, given: Sequence[Any]) -> Any:
    """Evaluate a rule such as `out_shape`, `out_dtype` or `work_items` of `Custom`.

    `given` has the shape (or dtype) of each input. A rule that is a function is called with these;
    None stands for the first of them; any other rule is the value.
    """
    if rule is None:
        return given[0]
    return rule(*given) if callable(rule) and not isinstance(rule, (type, DType)) else rule


def _is_shape(value: object) -> bool:
    return isinstance(value, (tuple, list)) and all(
        isinstance(n, (int, np.integer)) and n >= 0 for n in value
    )


# ---- kernels as ops of the graph -----------------------------------------------------------------


@op(name="custom", composite=False, graph_only=True)
def custom(inputs: Sequence[Tensor], kernel: CustomKernel):
    """Primitive op: run a user's kernel (`Custom`) that has no side effects."""


@op(name="custom_effect", composite=False, graph_only=True, effects=(IO(),))
def custom_effect(inputs: Sequence[Tensor], kernel: CustomKernel):
    """Primitive op: run a user's kernel that has side effects.

    Calls are never removed, merged or reordered.
    """


def _types(
    types: Sequence[TensorType], kernel: CustomKernel
) -> TensorType | tuple[TensorType, ...]:
    return kernel.result_types(types)


def _gradients(
    inputs: Sequence[Tensor], out: object, dout: object, kernel: CustomKernel
) -> tuple[Tensor, ...]:
    if kernel.gradient is None:
        raise GradientError(
            f"Custom: the operator {kernel.name!r} has no bprop; give one, or wrap its inputs in "
            "stop_gradient"
        )
    found = kernel.gradient(*inputs, out, dout)
    gradients = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    if len(gradients) != len(inputs):
        raise GradientError(
            f"Custom: the bprop of {kernel.name!r} returned {len(gradients)} gradients; wanted "
            f"{len(inputs)}, one for each input"
        )
    return gradients


def _checked_gradients(
    inputs: Sequence[Tensor], out: object, dout: object, kernel: CustomKernel
) -> tuple[Tensor, ...]:
    """Return the gradients of a kernel's inputs by the user's `bprop`.

    In debug mode, `bprop` is first compared with finite differences of the kernel. A kernel with
    side effects uses `_gradients` instead, since the comparison calls the kernel several times.
    """
    if settings.debug and kernel.gradient is not None:
        check_function(
            f"Custom {kernel.name!r}",
            kernel.gradient,
            lambda *xs: dispatch(custom, xs, {"kernel": kernel}),
            [x._type.plain for x in inputs],
        )
    return _gradients(inputs, out, dout, kernel)


def _refused(inputs: Sequence[Tensor], kernel: CustomKernel) -> NoReturn:
    """Raise the error for a kernel that the device cannot run.

    It is registered as the decomposition of the op, which the lowering asks for only after the
    backend has refused the kernel.
    """
    raise UnsupportedOpError(
        f"Custom: the operator {kernel.name!r} cannot run on this device: it has "
        f"{kernel.languages}; wanted a language of the device ('c' for CPU, 'opencl' for OpenCL, "
        "'cuda' for GPU)"
    )


for _op, _rule in ((custom, _checked_gradients), (custom_effect, _gradients)):
    _op.infer(_types)
    _op.bprop(_rule)
    _op.decompose(_refused)


# ---- the public class ----------------------------------------------------------------------------


def _check_form(func_type: str, given: Mapping[str, object]) -> None:
    """Raise an error unless `func_type` exists and the options of `ops.Custom` fit it.

    `given` has the options by name; None means that one was left out.
    """
    if func_type not in OPTIONS:
        raise ArgumentValueError(
            f"Custom: got func_type={func_type!r}; wanted one of {', '.join(OPTIONS)}"
        )
    for option, value in given.items():
        if value is not None and option not in OPTIONS[func_type]:
            raise ArgumentValueError(
                f"Custom: got {option}={value!r}, which has no meaning for "
                f"func_type={func_type!r}; leave it out"
            )
    if func_type == "source" and given["in_dtype"] is None:
        raise ArgumentError(
            "Custom: got source without in_dtype; wanted the dtype of the inputs, a tuple "
            "with one for each, or 'any' for a kernel that looks at the dtypes itself"
        )


def _check_dtypes(in_dtype: Any, out_dtype: Any) -> None:
    """Raise ArgumentError if `in_dtype` or `out_dtype` of `ops.Custom` names no dtype.

    A function as `out_dtype` is not called here.
    """
    for option, value in {"in_dtype": in_dtype, "out_dtype": out_dtype}.items():
        ruled = callable(value) and not isinstance(value, (type, DType))
        if value is None or (value == "any" if option == "in_dtype" else ruled):
            continue
        for dtype in value if isinstance(value, (tuple, list)) else (value,):
            try:
                as_dtype(dtype)
            except TypeError as error:
                said = str(error).removeprefix("dtype: ")
                raise ArgumentError(f"Custom: {option}: {said}") from None


class Custom(Primitive):
    """User-defined operator (`mindspore.ops.Custom`).

    Args:
        func: the operator, whose form depends on `func_type`:

            - ``"pyfunc"``, ``"hybrid"``: a Python function; it gets the inputs as NumPy arrays and
              returns one array or a tuple of them.
            - ``"source"``: a dict of kernel sources by language, of ``"c"`` (for CPU), ``"opencl"``
              and ``"cuda"``; all define the function `name`.
            - ``"aot"``: ``"path/library.so:name"``, a library built ahead of time, for CPU.
            - ``"expression"``: an element-wise expression such as ``"x * exp(-y)"``. The inputs are
              the names in it, in the order in which they occur first. It runs on every device, is
              fused with its neighbours in compiled functions, and has a gradient of its own.

            C functions have MindSpore's signature, ``int name(int nparam, void **params, int
            *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra)``; `params`
            are the inputs, then the results; a returned value other than 0 is an error. A library
            does not tell the signature of a C function: one of another signature is undefined
            behaviour. OpenCL kernels and CUDA kernels (``extern "C" __global__ void``) have one
            pointer for each input, then one for each result, and are refused if they have other
            parameters. Sizes and element types are macros: ``IN0_SIZE``,
            ``IN0_NDIM``, ``IN0_DIM1``, ``IN0_TYPE``, ``OUT0_SIZE`` and so on. The element type of
            float16 and bfloat16 is an unsigned integer with their bits. Inputs keep the shapes that
            they have: nothing is broadcast. Kernels must not write to their inputs.
        out_shape: shape of the result, a tuple with a shape per result if there are several, or a
            function of the input shapes that returns it. None: for a Python function, the shape is
            not checked; for a kernel, it is that of the first input.
        out_dtype: the dtype or dtypes of the results, in the same forms. Results of a Python
            function are cast to it.
        func_type: see `func`.
        bprop: ``bprop(*inputs, out, dout)`` of Tensors, one gradient for each input. None: there is
            no gradient. An expression has one of its own.
        reg_info: without effect.
        name: name of the kernel's function.
        work_items: for OpenCL and CUDA: number of work items, or a function of the input shapes. It
            is rounded up to whole groups, so that a kernel must check its index. None: one for each
            element of the first result.
        in_dtype: for kernels: the dtype of all inputs, or a tuple with one for each; inputs of
            other dtypes are refused. ``"any"``, the default for a library, allows all: a C function
            can inspect `dtypes`, an OpenCL or CUDA kernel ``IN0_TYPE``. An operator given as source
            needs this option.
        effects: whether the kernel does more than compute its results, so that no call may be
            removed, merged with another one or moved before it.

    Raises:
        ValueError: another `func_type` or language, an option that has no meaning for it, or an
            expression with unknown parts.
        TypeError: `func` is not what its `func_type` takes, or source without `in_dtype`.

    Examples:
        >>> import duograph as ms
        >>> square = ms.ops.Custom(lambda x: x * x, lambda s: s, lambda d: d, "pyfunc",
        ...                        bprop=lambda x, out, dout: (2 * x * dout,))
        >>> ms.grad(square)(ms.Tensor(3.0)).item()
        6.0
        >>> swish = ms.ops.Custom("x / (1 + exp(-b * x))", func_type="expression")
        >>> swish(ms.Tensor([0.0, 2.0]), ms.Tensor(1.0))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.76159406e+00])
    """

    def __init__(
        self,
        func: Any,
        out_shape: object = None,
        out_dtype: object = None,
        func_type: str = "pyfunc",
        bprop: Callable[..., object] | None = None,
        reg_info: object = None,
        *,
        name: str | None = None,
        work_items: object = None,
        in_dtype: Any = None,
        effects: bool = False,
    ) -> None:
        super().__init__()
        check_options("ops.Custom", reg_info=reg_info)
        given = {
            "out_shape": out_shape, "out_dtype": out_dtype, "bprop": bprop, "name": name,
            "work_items": work_items, "in_dtype": in_dtype, "effects": effects or None,
        }  # fmt: skip
        _check_form(func_type, given)
        _check_dtypes(in_dtype, out_dtype)
        if bprop is not None and not callable(bprop):
            raise ArgumentError(f"Custom: got {type(bprop).__name__} for bprop; wanted a function")
        place = called_at()
        self._made_at = f" ({place})" if place else ""
        self.func = func
        self.func_type = func_type
        self.out_shape = out_shape
        self.out_dtype = out_dtype
        self.bprop = bprop
        self.kernel: CustomKernel | None = None
        self._expression: Callable[..., Any] | None = None
        if func_type in ("source", "aot"):
            function, sources, library = (
                _sources(func, name) if func_type == "source" else _library(func)
            )
            self.kernel = CustomKernel(
                function, sources, library, out_shape, out_dtype, bprop, work_items, in_dtype
            )
            self.op = custom_effect if effects else custom
        elif func_type == "expression":
            if not isinstance(func, str):
                raise ArgumentError(
                    f"Custom: got {type(func).__name__} for func; wanted an expression such as "
                    "'x * exp(-y)'"
                )
            self._expression = expression_function(func)
        elif not callable(func):
            raise ArgumentError(
                f"Custom: got {type(func).__name__} for func; wanted a function of arrays"
            )

    def __call__(self, *inputs: object) -> object:
        """Call the operator on Tensors; return its result, or a tuple of its results."""
        if self._expression is not None:
            names = self._expression.__code__.co_varnames
            if len(inputs) != len(names):
                raise ArgumentError(
                    f"Custom: got {len(inputs)} inputs for the expression {self.func!r}; wanted "
                    f"{len(names)}: {', '.join(names)}"
                )
            return self._expression(*inputs)
        if self.op is not None:
            return self.op(inputs, self.kernel)
        return custom_gradient(self._run, self._gradient, inputs, "Custom", self.bprop)

    def _gradient(self, *args: object) -> object:
        """Return the gradients of a Python function's inputs, by the user's `bprop`.

        Raises GradientError if the user gave no `bprop`.
        """
        if self.bprop is None:
            raise GradientError(
                "Custom: the op has no bprop; give one, or wrap its inputs in stop_gradient"
            )
        return self.bprop(*args)

    def _run(self, *inputs: object) -> Tensor | tuple[Tensor, ...]:
        """Call the user's Python function with NumPy arrays; return its results as Tensors."""
        arrays = [np.array(x.asnumpy()) if isinstance(x, Tensor) else x for x in inputs]
        try:
            found: Any = self.func(*arrays)
        except TypeError as error:
            _name_inputs(self.func, arrays, error)
            raise
        several = isinstance(found, (tuple, list))
        outs = [np.asarray(a) for a in (found if several else (found,))]
        shapes = _wanted(
            self.out_shape, [a.shape for a in arrays if isinstance(a, np.ndarray)], len(outs)
        )
        types = [x.dtype for x in inputs if isinstance(x, Tensor)]
        dtypes = _wanted(self.out_dtype, types, len(outs))
        made = []
        for a, shape, dtype in zip(outs, shapes, dtypes, strict=True):
            if shape is not None and tuple(shape) != a.shape:
                raise ShapeError(
                    f"Custom: func{defined_at(self.func)} returned an array of shape {a.shape}; "
                    f"wanted {tuple(shape)}, the out_shape given to ops.Custom{self._made_at}: "
                    "change one of them"
                )
            made.append(Tensor(a, None if dtype is None else as_dtype(dtype)))
        return tuple(made) if several else made[0]


def _name_inputs(func: Callable[..., Any], arrays: Sequence[object], error: TypeError) -> None:
    """Rewrite a TypeError about the number of inputs so that it names the user's function.

    `func` is that function and `arrays` its arguments. `error` is changed in place, but only if
    `func` cannot take this number of arguments.
    """
    signature = inspect.signature(func)
    try:
        signature.bind(*arrays)
    except TypeError:
        code = getattr(func, "__code__", None)
        place = f" ({short(code.co_filename)}:{code.co_firstlineno})" if code else ""
        name = getattr(func, "__name__", type(func).__name__)
        error.args = (
            f"Custom: got {len(arrays)} input{'s' * (len(arrays) != 1)} for its function "
            f"{name}{place}; wanted inputs for ({', '.join(signature.parameters)}): {error}",
        )


def _wanted(rule: object, given: list[Any], count: int) -> list[Any]:
    """Return the expected shape (or dtype) of each of `count` results of a Python function.

    `rule` is the user's `out_shape` (or `out_dtype`), or a function that computes it from `given`,
    the shapes (or dtypes) of the inputs. Without a rule the items are None.
    """
    if rule is None:
        return [None] * count
    found = _ruled(rule, given)
    if count == 1:
        nested = (
            isinstance(found, (tuple, list))
            and len(found) == 1
            and isinstance(found[0], (tuple, list))
        )
        return [found[0] if nested else found]
    return list(found)


def _sources(func: object, name: str | None) -> tuple[str, Mapping[str, str], str | None]:
    """Check the arguments of a "source" operator; return (kernel name, sources by language, None).

    `func` is the dict of sources by language, `name` the name of the kernel's function. The third
    item, which is the path of a library for an "aot" operator, is None here.
    """
    if not isinstance(func, Mapping) or not func:
        raise ArgumentError(
            f"Custom: got {type(func).__name__} for func; wanted a dict of sources by language, "
            "such as {'c': '...'}"
        )
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError(f"Custom: got name={name!r}; wanted the name of the kernel's function")
    for language, source in func.items():
        if language not in LANGUAGES:
            raise ArgumentValueError(
                f"Custom: got a source in {language!r}; wanted one of {', '.join(LANGUAGES)}"
            )
        if not isinstance(source, str) or name not in source:
            raise ArgumentValueError(
                f"Custom: the source in {language!r} does not define the function {name!r}"
            )
    return name, dict(func), None


def _library(func: object) -> tuple[str, Mapping[str, str], str | None]:
    """Split `func` of an "aot" operator; return (kernel name, {}, path of the library).

    `func` has the form ``"path/library.so:name"``. The second item, the sources by language, is an
    empty dict because there are none.
    """
    path, _, name = func.rpartition(":") if isinstance(func, str) else ("", "", "")
    if not path or not name.isidentifier():
        raise ArgumentError(
            f"Custom: got {func!r} for func; wanted 'path/library.so:name' for func_type='aot'"
        )
    if not os.path.isfile(path):
        raise ArgumentValueError(f"Custom: there is no library {path}")
    return name, {}, os.path.abspath(path)
