"""Hints for error messages: what to write instead of names and calls that do not exist here.

`tracebacks` calls `attribute_advice` when Python prints an error, `compat` calls
`missing_name_advice` for a name that a module lacks, and the wrappers of public functions in
`call_errors` call `arity_error`. Nothing here runs unless an error is raised.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import linecache
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence

from .errors import ArgumentError

__all__ = [
    "arity_error", "attribute_advice", "kind_of", "like_keyword", "meant", "missing_name_advice",
    "near", "of_grad", "number_hint", "operand_error", "tensor_hint",
    "unknown_option",
]  # fmt: skip

_STEP = (
    "gradients are functions here: `step = ms.value_and_grad(forward, None, "
    "optimizer.parameters)`, then `loss, grads = step(x)` and `optimizer(grads)`; "
    "`ms.grad(forward, None, w)(x)` is the gradient of one Parameter `w`"
)
_DEVICE = (
    '`ms.set_device("GPU")` chooses the device of all data, `x.move_to("GPU")` copies one Tensor; '
    "`duograph devices` lists the names"
)
_MODE = "write `net.set_train(False)` before an evaluation, `net.set_train()` before training"
_FILES = "write `ms.save_checkpoint(net, file)` and `ms.load_checkpoint(file, net)`"
_NO_GRAD = "only functions given to `ms.grad` or `ms.value_and_grad` are recorded; leave it out"

# What a class of ours lacks -> what to write. The class is the first in the order of inheritance.
_ATTRIBUTES: dict[str, dict[str, str]] = {
    "Tensor": {
        **dict.fromkeys(("backward", "grad", "retain_grad", "grad_fn"), _STEP),
        **dict.fromkeys(("cuda", "cpu", "npu", "device"), _DEVICE),
        "detach": "write `ops.stop_gradient(x)`; for a NumPy array `x.asnumpy()` is enough",
        "requires_grad": "`ms.grad` differentiates with respect to any argument; leave it out",
        "data": "a Tensor is its own data; write `x`, or `x.copy()` for a copy",
        "contiguous": "all Tensors are contiguous; leave it out",
        "numel": "write `x.size`",
        "dim": "write `x.ndim`",
        "append": "Tensors keep their size; write `ops.concat((x, y))`, or collect in a list",
        "plot": "write `x.asnumpy()` to use it with NumPy and matplotlib",
    },
    "Cell": {
        **dict.fromkeys(("cuda", "cpu", "npu", "to", "device"), _DEVICE),
        **dict.fromkeys(("eval", "train"), _MODE),
        **dict.fromkeys(("zero_grad", "backward"), _STEP),
        **dict.fromkeys(("load_state_dict", "save", "load"), _FILES),
        "parameters": "write `net.trainable_params()` or `net.get_parameters()`",
        "named_parameters": "write `net.parameters_and_names()`",
        "children": "write `net.cells()`",
        "modules": "write `net.cells_and_names()`",
        "named_modules": "write `net.cells_and_names()`",
        "add_module": "write `net.insert_child_to_cell(name, cell)`",
        "forward": "call the object, `net(x)`; the method is called `construct`",
        "float": "write `net.to_float(ms.float32)`",
        "half": "write `net.to_float(ms.float16)`",
        "fit": "write `ms.Model(net, loss_fn, optimizer).fit(epochs, dataset)`",
        "predict": "write `ms.Model(net).predict(x)`, or call the object, `net(x)`",
        "summary": "write `print(net)`",
    },
    "Optimizer": {
        "zero_grad": f"there is nothing to reset: leave it out; {_STEP}",
        "step": _STEP,
        "param_groups": "write `optimizer.group_params`, or `optimizer.get_lr()` for the rate",
    },
    "RunContext": {
        **dict.fromkeys(
            ("loss", "net_outputs", "cur_step_num", "cur_epoch_num", "network", "optimizer"),
            "write `run_context.original_args()`; its attributes are net_outputs (the loss), "
            "cur_epoch_num, cur_step_num, network, optimizer",
        ),
    },
    "Dataset": {
        "shape": "write `data.output_shapes()`",
        "__getitem__": "iterate: `for row in data:`; `next(iter(data))` is the first row",
        "__next__": "write `rows = iter(data)` once, then `next(rows)`",
    },
}
# class of `_ATTRIBUTES` -> the name of such an object in its texts
_NAMED = {"Tensor": "x", "Cell": "net", "Optimizer": "optimizer", "Dataset": "data"}
# "module.name" of a module of ours -> what to write
_MODULE_NAMES = {
    "no_grad": _NO_GRAD,
    "enable_grad": _NO_GRAD,
    "compile": "write `ms.jit(function)`, or `ms.set_context(mode=ms.GRAPH_MODE)` for Cells",
    "save": _FILES,
    "optim": "optimisers are in `nn`, such as `nn.Adam`",
    "nn.optim": "optimisers are in `nn`, such as `nn.Adam`",
    "nn.functional": "functions such as relu are in `ops`: `ops.relu(x)`",
    "nn.Module": "the base class of networks is `nn.Cell`; its method is `construct`",
    "nn.cell": "the base class of networks is `nn.Cell`",
    "nn.ModuleList": "write `nn.CellList`",
    "nn.ModuleDict": "write `nn.CellDict`",
    "nn.Sequential": "write `nn.SequentialCell`",
    "nn.lr_scheduler": "give the optimiser a schedule as its `learning_rate`, such as "
    "`nn.piecewise_constant_lr([30, 60], [0.1, 0.01])` (0.1 for 30 steps, then 0.01) or "
    "`nn.ExponentialDecayLR(0.1, 0.9, 30)` (times 0.9 in 30 steps)",
    "dataset.DataLoader": "write `dataset.GeneratorDataset(source, column_names).batch(n)`",
    "dataset.Dataset": "write a class with `__getitem__` and `__len__`; give an object of it to "
    "`dataset.GeneratorDataset`",
    "device": _DEVICE,
    "cuda": _DEVICE,
}  # fmt: skip
# An argument of other libraries -> names of the same here, the first that a function has.
_KEYWORDS = {
    "dim": ("axis",), "dims": ("axis", "axes"), "axis": ("dim",), "axes": ("axis", "dim"),
    "keepdim": ("keep_dims", "keepdims"), "keepdims": ("keep_dims", "keepdim"),
    "keep_dims": ("keepdim", "keepdims"),
    "lr": ("learning_rate",), "learning_rate": ("lr",),
    "bias": ("has_bias",), "has_bias": ("bias",), "groups": ("group",), "group": ("groups",),
    "in_features": ("in_channels",), "out_features": ("out_channels",),
    "num_embeddings": ("vocab_size",), "embedding_dim": ("embedding_size",),
    "inplace": (), "device": (), "requires_grad": (),
    "params": ("parameters",), "epochs": ("epoch",), "callback": ("callbacks",),
    "weight": ("weight_init",), "label": ("labels", "target"), "input": ("x", "logits"),
}  # fmt: skip
_CALLED_ATTRIBUTE = {
    "size": "`size` is a number of elements, no method; write `x.shape[0]` for the size of axis 0",
    "shape": "`shape` is a tuple, no method; write `x.shape` without brackets",
    "dtype": "`dtype` is no method; write `x.dtype`",
    "ndim": "`ndim` is no method; write `x.ndim`",
    "T": "`T` is no method; write `x.T`",
}  # fmt: skip
# pattern of a message of Python -> what to write
_SAID = {
    r"^set_context\(\) takes 0 positional": "write `ms.set_context(mode=ms.GRAPH_MODE)`",
    r"'NoneType' and|and 'NoneType'|'NoneType' object is not (callable|iterable)": "a value is "
    "None: was it never set, or does a function or a `construct` end without `return`?",
}
_FUNCTION_OF_GRAD = (
    "`ms.grad(f)` and `ms.value_and_grad(f)` return a function that computes the gradient; call "
    "it: `ms.grad(f)(x)`, or `loss, grads = ms.value_and_grad(f)(x)`"
)
_CALLED_TENSOR = "a Tensor is indexed with square brackets, `x[0]`; round ones call a function"
_LONGEST = 160  # characters of a signature in a message


# (function, unknown option) -> what to write
_OPTION_ADVICE = {
    ("set_context", "precision"): "`ms.amp.auto_mixed_precision(net)` or "
    "`net.to_float(ms.float16)` chooses the precision",
    ("jit", "device"): "`ms.set_device(...)` before the call chooses the device",
    ("jit", "static_argnums"): "arguments that are no Tensors are constants without it",
}
_LISTED = 8  # names in a message, of a longer list


def kind_of(value: object) -> str:
    """Return a description of a value for messages, such as "int" or "the class ReLU itself"."""
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    if isinstance(value, types.MethodType):
        return f"the method {value.__name__}, not called,"
    if isinstance(value, types.FunctionType):
        return f"the function {value.__name__}"
    return type(value).__name__


def like_keyword(name: str, known: Iterable[str]) -> str:
    """Return a hint such as "; did you mean learning_rate?" for an unknown argument, or "".

    `known` are the names of the function's parameters.
    """
    names = list(known)
    if name == "betas" and {"beta1", "beta2"} <= set(names):
        return "; its two numbers are beta1=0.9 and beta2=0.999 here"
    for other in _KEYWORDS.get(name, ()):
        if other in names:
            return f"; did you mean {other}?"
    like = near(name, names)
    return f"; did you mean {like}?" if like else ""


def near(name: str, known: Sequence[str]) -> str:
    """Return the name among `known` that is most similar to `name`; "" if none is similar."""
    difflib = importlib.import_module("difflib")  # late: most programs misspell nothing
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.7)), "")


def unknown_option(owner: str, name: object, known: Sequence[str]) -> str:
    """Return the message for an option that a function does not have."""
    said = _OPTION_ADVICE.get((owner, str(name)), "")
    return f"{owner}: got the unknown option {name!r}; {said or meant(str(name), known, owner)}"


def meant(name: str, known: Sequence[str], where: str = "") -> str:
    """Return a hint for an unknown name: "did you mean x?", or a list of the known names.

    The list is returned if no known name is similar.

    Args:
        name: what the user wrote.
        known: the known names.
        where: name of the public function whose documentation lists all known names. A list that is
            cut off refers to it; "" for none.
    """
    like = _continued(name, known) or [n for n in (near(name, known),) if n]
    if like:
        return f"did you mean {' or '.join(like)}?"
    if len(known) <= 2 * _LISTED:
        return f"wanted one of {', '.join(known)}"
    listed = f"wanted one of {', '.join(known[:_LISTED])} and {len(known) - _LISTED} more"
    return f"{listed}, which help(ms.{where}) lists" if where else listed


def _continued(name: str, known: Sequence[str]) -> list[str]:
    """Return up to three names in `known` that begin with `name` and an underscore."""
    return [k for k in known if k.startswith(f"{name}_")][:3] if name else []


def operand_error(op: str, value: object) -> ArgumentError:
    """Return the error for an operand that is neither a Tensor nor a number."""
    head = f"{op}: " if op else ""
    text = f"{head}got {type(value).__name__} for an operand; wanted a Tensor or a number"
    if value is None:
        text += ". A value is None: does a function end without `return`?"
    elif isinstance(value, str):
        text += (
            ". A Tensor gets into a text with an f-string, f'... {tensor} ...'; float(...) reads a "
            "number from a text"
        )
    elif isinstance(value, types.FunctionType):
        text += f". {_FUNCTION_OF_GRAD if of_grad(value) else 'Call the function first'}"
    return ArgumentError(text)


def number_hint(value: object) -> str:
    """Return the end of "wanted a number" for a text: how to read the number from it, or ""."""
    return "; float(...) reads a number from a text (str)" if isinstance(value, str) else ""


def tensor_hint(value: object) -> str:
    """Return the end of "wanted a Tensor" for another value: how to get one from it, or ""."""
    if isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            if hasattr(item, "dtype") and hasattr(item, "shape"):
                return (
                    f", one item of the {type(value).__name__}: "
                    f"item [{i}] has the shape {tuple(item.shape)}"
                )
        if value and isinstance(value[0], (bool, int, float, list, tuple)):
            shown = repr(value)
            return f", Tensor({shown})" if len(shown) <= 40 else ", Tensor([...]) of the list"
    if type(value).__module__ == "numpy":
        return ": give the array to Tensor(...)"
    return ""


def of_grad(value: object) -> bool:
    """Return whether a value is a function defined in `autodiff`, such as a result of `ms.grad`."""
    module = getattr(getattr(value, "__globals__", None), "get", lambda _: "")("__name__") or ""
    return isinstance(value, types.FunctionType) and module.startswith("duograph.autodiff")


def arity_error(
    owner: str, function: Callable[..., object], args: Sequence[object],
    kwargs: Mapping[str, object], said: str, bound: int = 0,
) -> ArgumentError | None:  # fmt: skip
    """Return the error for arguments that a function's signature cannot take; None if it can.

    Args:
        owner: name of the function, for the message.
        said: the message of Python's TypeError.
        bound: how many leading parameters are bound already: 1 for a method.
    """
    parameters = list(inspect.signature(function).parameters.values())[bound:]
    signature = inspect.Signature(parameters)
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        why = said.partition("() ")[2] or said
    else:
        return None
    named = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    unknown = [k for k in kwargs if k not in named]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        why = f"got an unexpected keyword argument {unknown[0]!r}{like_keyword(unknown[0], named)}"
    elif why.startswith(("takes ", "too many positional")):
        why = f"takes {len(positional)} positional arguments but got {len(args)}"
    ask, _, hint = why.partition("; did you mean ")
    why = f"{ask} (did you mean {hint[:-1]}?)" if hint else why
    return ArgumentError(f"{owner}: {why}; wanted {owner}({_plain(parameters)})")


def _plain(parameters: Sequence[inspect.Parameter]) -> str:
    """Return the text of parameters without annotations, such as "x, axis=0".

    A text that grows longer than 160 characters ends in "..." instead.
    """
    empty = inspect.Parameter.empty
    made: list[str] = []
    for p in parameters:
        star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        if p.kind is p.KEYWORD_ONLY and not any(m.startswith("*") for m in made):
            made.append("*")
        made.append(f"{star}{p.name}" + ("" if p.default is empty else f"={p.default!r}"))
        if len(", ".join(made)) > _LONGEST:
            return ", ".join([*made[:-1], "..."])
    return ", ".join(made)


def missing_name_advice(path: str, name: str) -> str:
    """Return the end of the error message for a name that a module lacks, such as "; write ...".

    `path` is the module's name without "duograph.", or "" for the package itself. Returns "" if
    nothing is known.
    """
    found = _MODULE_NAMES.get(f"{path}.{name}" if path else name)
    return f"; {found}" if found else ""


def attribute_advice(error: BaseException) -> str:
    """Return what to write instead of the code for which Python raised an error, or ""."""
    if isinstance(error, AttributeError):
        return _missing_attribute(error)
    if isinstance(error, KeyError):
        return _missing_key(error)
    said, source = str(error), _source(error)
    if "Dataset' object is not subscriptable" in said:
        text, own = _ATTRIBUTES["Dataset"]["__getitem__"], r"([A-Za-z_][\w.]*)\["
        return _renamed(text, "data", re.match(own, _expression(error)))
    if "Dataset' object is not an iterator" in said:
        text, own = _ATTRIBUTES["Dataset"]["__next__"], r"next\(([A-Za-z_][\w.]*)\)"
        return _renamed(text, "data", re.match(own, _expression(error)))
    if "object is not callable" in said and re.search(r"'(int|tuple|Tensor|DType)'", said):
        called = [n for n in re.findall(r"\.(\w+)\(", source) if n in _CALLED_ATTRIBUTE]
        if called:
            return _CALLED_ATTRIBUTE[called[0]]
        return _CALLED_TENSOR if "'Tensor'" in said else ""
    if said.startswith("module() takes at most 2"):  # a class derived from a module
        name = re.search(r"\(\s*\w+\.(\w+)\s*\)", source)
        return _MODULE_NAMES.get(f"nn.{name[1]}", "") if name else ""
    made = re.match(r"(\w+)\.__init__\(\) takes 1 positional argument but", said)
    if made is not None and re.search(rf"\b{made[1]}\(", source):
        return f"an object is made first, `net = {made[1]}()`; then it takes the data, `net(x)`"
    if "unpack" in said and "create_dict_iterator" in source:
        return (
            'a row of `create_dict_iterator` is a dict: write `row["x"]`, or loop over '
            "`create_tuple_iterator()`, whose rows are lists in the order of the columns"
        )
    if "'function'" in said and any(of_grad(v) for v in _named_values(error)):
        return _FUNCTION_OF_GRAD
    if "non-iterable function object" in said and re.search(r"grad\(", source):
        return _FUNCTION_OF_GRAD
    for pattern, text in _SAID.items():
        if re.search(pattern, said):
            return _which_is_none(error) or text
    if said.startswith("too many values to unpack") and re.search(r"\bgrad\(", source):
        return "`ms.grad` returns the gradient alone; `ms.value_and_grad` returns the value as well"
    if re.match(r"[\w.]+\(\) (missing|takes|got an unexpected keyword|got multiple)", said):
        return _wanted_arguments(error)
    return ""


def _wanted_arguments(error: BaseException) -> str:
    """Return "wanted f(x, axis=0)" for a call of a function or class of ours that does not bind.

    Returns "" for calls of other functions, and where the source does not name the function.
    """
    called = re.match(r"([A-Za-z_][\w.]*)\(", _expression(error))
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if called is None or trace is None:
        return ""
    first, *rest = called[1].split(".")
    frame = trace.tb_frame
    found: object = frame.f_locals.get(first, frame.f_globals.get(first))
    for name in rest:
        if not isinstance(found, (types.ModuleType, type)):  # a property would run
            return ""
        found = getattr(found, name, None)
    if not callable(found) or not getattr(found, "__module__", "").startswith("duograph."):
        return ""
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):  # it has no signature
        return ""
    return f"wanted {called[1]}({_plain(parameters)})"


def _missing_key(error: KeyError) -> str:
    """Return a hint for a KeyError of a dataset row, a dict, that was indexed with an integer.

    The hint lists the row's keys. Returns "" if the key was not an integer or no row is found.
    """
    if not error.args or not isinstance(error.args[0], int):
        return ""
    for value in _named_values(error):
        if isinstance(value, dict) and value and all(isinstance(k, str) for k in value):
            first = next(iter(value))
            return f'the keys of the row are {", ".join(value)}: write `["{first}"]`'
    return ""


def _missing_attribute(error: AttributeError) -> str:
    name = getattr(error, "name", None)
    owner = getattr(error, "obj", None)
    found = re.match(r"'(\w+)' object has no attribute '(\w+)'", str(error))
    if found is not None:
        name = found[2]
    if name is None:
        return ""
    if isinstance(owner, types.ModuleType):
        package, _, path = owner.__name__.partition(".")
        return missing_name_advice(path, name).removeprefix("; ") if package == "duograph" else ""
    if of_grad(owner):
        return _FUNCTION_OF_GRAD
    classes = [c.__name__ for c in type(owner).__mro__ if c.__module__.startswith("duograph")]
    if found is not None and not classes:
        classes = [found[1]]
    for each in classes:
        said = _ATTRIBUTES.get(each, {}).get(name)
        if said:
            return _of_receiver(error, name, each, said)
    if owner is None and classes == ["Tensor"]:  # of compiled code, where Python suggests nothing
        like = near(name, dir(sys.modules["duograph.tensor"].Tensor))
        return f"did you mean {like}?" if like else ""
    return ""


def _of_receiver(error: BaseException, name: str, kind: str, said: str) -> str:
    """Put the user's own expression into advice about an attribute: "w.size" for "x.size"."""
    if kind not in _NAMED or said == _STEP:
        return said
    own = re.match(rf"([A-Za-z_][\w.]*)\.{name}$", _expression(error))
    return _renamed(said, _NAMED[kind], own)


def _renamed(said: str, name: str, own: re.Match[str] | None) -> str:
    """Replace a name in advice by the first group of a match, if there is one."""
    return said if own is None else re.sub(rf"(?<![\w.]){name}(?![\w=])", own[1], said)


def _which_is_none(error: BaseException) -> str:
    """Return a hint such as "`self.norm` is None: ..." for the error of calling None, or "".

    The result is "" if another operation failed, or if the callee is not a name.
    """
    called = re.match(r"([A-Za-z_][\w.]*)\(", _expression(error))
    if called is None or "not callable" not in str(error):
        return ""
    return f"`{called[1]}` is None: was it never set?"


def _expression(error: BaseException) -> str:
    """Return the source text of the expression that raised an error, or "" if it is not known.

    The position of the expression comes from the traceback, which has columns from Python 3.11 on.
    An error from a compiled function instead has a note with the source line and, below it, a line
    of carets (^) that marks the expression.
    """
    for note in getattr(error, "__notes__", ()):
        lines = str(note).splitlines()
        for text, mark in itertools.pairwise(lines):
            if mark.strip() and not mark.strip("^ "):
                return text[mark.index("^") : mark.rindex("^") + 1]
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or sys.version_info < (3, 11):
        return ""
    places = list(trace.tb_frame.f_code.co_positions())
    line, last, start, end = places[trace.tb_lasti // 2]
    if line is None or line != last:
        return ""
    source = linecache.getline(trace.tb_frame.f_code.co_filename, line).encode()
    return source[start:end].decode(errors="ignore")


def _named_values(error: BaseException) -> list[object]:
    """Return the value of each name in the source line that raised an error; None if undefined."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return []
    frame = trace.tb_frame
    names = re.findall(r"[A-Za-z_]\w*", _source(error))
    return [frame.f_locals.get(n, frame.f_globals.get(n)) for n in names]


def _source(error: BaseException) -> str:
    """Return the source line at which an error was raised, or ""."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
