"""The decorator `jit`: checks its options and wraps a function, a method or a Cell.

Users call it. It must not compile anything, because the types of the arguments are known only at
the first call, when `compiler.function` compiles.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Mapping

from ..advice import unknown_option
from ..backend import registry
from ..errors import ArgumentError, ArgumentValueError, DeviceError
from ..frontend.types import Value
from ..nn.cell import Cell
from ..option_checks import check_options
from ..option_table import options_of
from .function import JitFunction
from .modes import signature_of
from .options import JitConfig

__all__ = ["jit", "ms_function"]


# MindSpore's names of its runtimes, which leave the device to the arguments.
_ANY_BACKEND = ("", "ms_backend", "GE")


def jit(
    function: Value = None,
    *,
    capture_mode: str = "ast",
    jit_level: str = "",
    dynamic: int | None = None,
    fullgraph: bool = False,
    backend: str = "",
    jit_config: JitConfig | Mapping[str, Value] | None = None,
    input_signature: Value = None,
    fn: Value = None,
    **options: Value,
) -> Value:
    """Compile a function, a method or a Cell (`mindspore.jit`); bare, with options, or called on a
    function.

    Args:
        function: what to compile. A method is compiled per receiver.
        capture_mode: "ast"; "bytecode" and "trace" have no meaning here.
        jit_level: "O0", "O1" or "O2"; "" is the default of the backend.
        dynamic: None: a size of a Tensor argument that has differed between two calls becomes
            symbolic at the third shape, so that one program serves many sizes; 1 or True: at the
            second shape; 0 or False: each shape is compiled on its own. A number argument becomes
            an input at its third value if the function only computes with it; with 0 it does not.
        fullgraph: refuse what only Python can run, as `jit_syntax_level="STRICT"` does.
        backend: the device_target, such as "CPU", on which the function runs: arguments without a
            device go there, arguments on another device are refused. With "", "ms_backend" or "GE"
            the device of the arguments decides.
        jit_config: a JitConfig or a dictionary of its options; keywords given here take precedence.
        input_signature: Tensors whose shapes (None is any) and dtypes the arguments must have.

    Returns:
        A function of the same arguments, with `explain`, `cache_info` and `clear`.

    Raises:
        TypeError: not a function, or a class.
        ValueError: an unknown option or value.

    Examples:
        >>> import duograph as ms
        >>> @ms.jit
        ... def mul(x, y):
        ...     return x * y
        >>> print(mul(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])))
        [3. 8.]
    """
    function = fn if function is None else function
    _check_options(capture_mode, dynamic, fullgraph, backend, options)
    given = JitConfig() if jit_config is None else JitConfig.of("jit", jit_config)
    syntax = options.get("jit_syntax_level", "")
    config = given.but(jit_level, syntax)
    strict = True if fullgraph else None

    device = "" if backend in _ANY_BACKEND else backend

    def decorate(f: Value) -> Value:
        return _compiled(f, config, strict, input_signature, device, dynamic)

    return decorate if function is None else decorate(function)


def _check_options(
    capture_mode: object,
    dynamic: object,
    fullgraph: object,
    backend: object,
    options: Mapping[str, object],
) -> None:
    """Raise ArgumentError or ArgumentValueError if an option passed to `jit` is not valid."""
    if capture_mode not in ("ast", "bytecode", "trace"):
        raise ArgumentValueError(
            f"jit: got capture_mode={capture_mode!r}; wanted 'ast', 'bytecode' or 'trace'"
        )
    if not isinstance(fullgraph, bool):
        raise ArgumentError(f"jit: got fullgraph={fullgraph!r}; wanted True or False")
    if dynamic not in (None, 0, 1):
        raise ArgumentValueError(f"jit: got dynamic={dynamic!r}; wanted None, 0 or 1")
    if not isinstance(backend, str):
        raise ArgumentError(f"jit: got backend={backend!r}; wanted a string")
    if backend not in _ANY_BACKEND:
        try:
            registry.canonical(backend.partition(":")[0])
        except DeviceError as error:
            raise ArgumentValueError(
                f'jit: got backend={backend!r}; wanted "ms_backend", "GE" or a device_target. '
                f"{error}"
            ) from None
    known = [o.name for o in options_of("jit")]
    for name in options:
        if name not in known:
            raise ArgumentValueError(unknown_option("jit", name, known))
    check_options("jit", capture_mode=capture_mode, **options)


def _compiled(
    f: Value,
    config: JitConfig,
    strict: bool | None,
    input_signature: Value,
    backend: str,
    dynamic: int | None,
) -> Value:
    """Return what `jit` returns for a function, method, Cell or callable object `f`.

    For a Cell, that is the Cell itself, which then calls its JitFunction. For a method, it is a
    bound method of a JitFunction; for a staticmethod or classmethod, one of a JitFunction. An `f`
    that is a JitFunction keeps its options, except for another `backend`. Otherwise the result is a
    JitFunction.

    Args:
        f: what to compile.
        config: the options of the function.
        strict: whether to refuse what only Python can run; None lets `config` decide.
        input_signature, backend, dynamic: see `jit`.

    Raises:
        ArgumentError: `f` is a class, or has no Python source.
    """
    if isinstance(f, JitFunction):
        return f if backend in ("", f._backend) else f.with_backend(backend)
    if isinstance(f, type):
        raise ArgumentError(
            f"jit: got the class {f.__name__}; wanted a function, a method or a Cell: decorate its "
            "methods, or use "
            "jit_class"
        )
    if isinstance(f, types.MethodType):
        inner = f.__func__
        made = (
            inner
            if isinstance(inner, JitFunction)
            else JitFunction(
                inner, config, strict, input_signature, backend=backend, dynamic=dynamic
            )
        )
        return made.__get__(f.__self__)
    if isinstance(f, Cell):
        cell = f
        if cell._jit_config is not None and config == JitConfig():
            config = cell._jit_config
        declared = signature_of(cell) if input_signature is None else input_signature
        made = JitFunction(type(cell).construct, config, strict, declared, cell, backend, dynamic)
        cell.__dict__["_compiled"] = made
        cell.__dict__["_plain"] = False
        return cell
    if isinstance(f, (staticmethod, classmethod)):
        return type(f)(_compiled(f.__func__, config, strict, input_signature, backend, dynamic))
    if not callable(f):
        raise ArgumentError(f"jit: got {type(f).__name__}; wanted a function, a method or a Cell")
    if not isinstance(f, types.FunctionType):
        method = getattr(type(f), "__call__", None)  # noqa: B004  (the function itself is wanted)
        if isinstance(f, functools.partial) or inspect.isfunction(
            getattr(method, "function", method)
        ):
            return JitFunction(f, config, strict, input_signature, f, backend, dynamic)
        raise ArgumentError(
            f"jit: got {getattr(f, '__name__', type(f).__name__)}, which has no Python source; "
            "wanted a Python function"
        )
    return JitFunction(f, config, strict, input_signature, backend=backend, dynamic=dynamic)


def ms_function(
    fn: Value = None,
    input_signature: Value = None,
    hash_args: Value = None,
    jit_config: Value = None,
) -> Value:
    """Compile a function; the older name of `jit` (`mindspore.ms_function` of 1.x).

    Examples:
        >>> import duograph as ms
        >>> @ms.ms_function
        ... def add(x, y):
        ...     return x + y
        >>> print(add(ms.Tensor([1.0]), ms.Tensor([2.0])))
        [3.]
    """
    check_options("ms_function", hash_args=hash_args)
    return jit(fn, input_signature=input_signature, jit_config=jit_config)
