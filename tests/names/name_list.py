"""The names of MindSpore 2.10.0 and what duograph has of them.

`mindspore_names.tsv` lists the paths below `mindspore`, one a line: the path, how many of twenty
open-source packages use it, how often, and its parameters where they are known. The files in
`missing` list the paths that duograph lacks, those in `signatures` the callables whose parameters
differ. Tests and `report.py` use this module; it changes nothing except for `write`.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import importlib
import inspect
import pathlib
import types
import warnings
from collections.abc import Iterable

from duograph.compat.refused_names import is_refused

HERE = pathlib.Path(__file__).resolve().parent
LIST = HERE / "mindspore_names.tsv"
PACKAGE = "duograph"
TOP = "mindspore"  # the namespace of names without a dot

Parameter = tuple[str, str, "str | None"]  # name, kind, default as text or None


@dataclasses.dataclass(frozen=True)
class Name:
    """One line of the list.

    Attributes:
        path: below the package, such as "nn.Cell".
        packages, uses: how many packages use the path, and how often.
        signature: text such as "(x, axis=0)", or "" where it is not known.
    """

    path: str
    packages: int
    uses: int
    signature: str

    @property
    def parent(self) -> str:
        """The path without its last part, `mindspore` for a name without a dot."""
        return self.path.rpartition(".")[0] or TOP

    @property
    def namespace(self) -> str:
        """The first two parts of the parent: the name of the files that list the path."""
        return ".".join(self.parent.split(".")[:2])


@functools.cache
def listed() -> tuple[Name, ...]:
    """Return all lines of the list."""
    rows = (line.split("\t") for line in LIST.read_text().splitlines() if line[:1] != "#")
    return tuple(Name(path, int(packages), int(uses), text) for path, packages, uses, text in rows)


def namespaces() -> list[str]:
    """Return the names of the files, sorted."""
    return sorted({name.namespace for name in listed()})


def find(path: str) -> object:
    """Return what `from duograph.a.b import c` finds for "a.b.c"; raises if it finds nothing."""
    parent, _, last = path.rpartition(".")
    owner = find_module(parent)
    if isinstance(owner, types.ModuleType) and not hasattr(owner, last):
        return importlib.import_module(f"{owner.__name__}.{last}")
    return getattr(owner, last)


def find_module(path: str) -> object:
    """Return the module of that path by an import, or else the class or object found there."""
    if not path:
        return importlib.import_module(PACKAGE)
    try:
        return importlib.import_module(f"{PACKAGE}.{path}")
    except ModuleNotFoundError:
        parent, _, last = path.rpartition(".")
        return getattr(find_module(parent), last)


def exists(path: str) -> bool:
    """Tell whether a path can be imported from duograph."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old names warn
        try:
            find(path)
        except (ImportError, AttributeError):
            return False
    return True


def refuses(path: str) -> bool:
    """Tell whether a path leads to a name that can be imported and refuses to be used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return is_refused(find(path))


def default_text(value: object) -> str:
    """Return a default as text that is the same for equal values of both packages."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    text = repr(value)
    if text.startswith(f"{PACKAGE}."):
        return text.partition(".")[2]
    if isinstance(value, type):
        return value.__name__
    try:
        return ast.unparse(ast.parse(text, mode="eval").body)
    except SyntaxError:
        return "..."  # an object that prints as <...>: any default


def parameters_of(found: object) -> list[Parameter] | None:
    """Return the parameters of a callable, or None if Python cannot tell them."""
    try:
        signature = inspect.signature(found)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return [
        (p.name, p.kind.name, None if p.default is p.empty else default_text(p.default))
        for p in signature.parameters.values()
    ]


def parameters_in(text: str) -> list[Parameter]:
    """Return the parameters that a signature of the list names."""
    arguments = ast.parse(f"def f{text}: pass").body[0].args  # type: ignore[attr-defined]
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    out: list[Parameter] = [
        (a.arg, "POSITIONAL_OR_KEYWORD", None if d is None else ast.unparse(d))
        for a, d in zip(positional, defaults, strict=True)
    ]
    if arguments.vararg:
        out.append((arguments.vararg.arg, "VAR_POSITIONAL", None))
    for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        out.append((a.arg, "KEYWORD_ONLY", None if d is None else ast.unparse(d)))
    if arguments.kwarg:
        out.append((arguments.kwarg.arg, "VAR_KEYWORD", None))
    return out


VARIABLE = ("VAR_POSITIONAL", "VAR_KEYWORD")


def difference(name: Name) -> str | None:
    """Say how the parameters of duograph's callable differ from the listed ones, None if not.

    Both must have the same names in the same order, the same defaults and the same keyword-only
    ones. Parameters that only duograph has must be optional and stand after the others.
    """
    theirs = parameters_in(name.signature)
    if is_refused(find(name.path)):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = parameters_of(find(name.path))
    if ours is None:
        return "Python cannot tell its parameters"
    if name.parent.split(".")[-1][:1].isupper():  # a method: what its first parameter is called
        theirs, ours = theirs[1:] if theirs[:1] and theirs[0][0] == "self" else theirs, ours[1:]
    if all(kind in VARIABLE for _, kind, _ in theirs):
        return None if theirs or not required(ours) else f"requires {required(ours)}"
    by_name = {p[0]: p for p in ours}
    for parameter in theirs:
        if parameter[1] in VARIABLE:
            if parameter[1] not in {kind for _, kind, _ in ours}:
                return f"lacks {parameter[0]} ({parameter[1].lower()})"
        elif parameter[0] not in by_name:
            return f"lacks {parameter[0]}"
        elif not same(parameter, by_name[parameter[0]]):
            return f"has {shown(by_name[parameter[0]])} for {shown(parameter)}"
    order = [p[0] for p in ours if p[1] == "POSITIONAL_OR_KEYWORD"]
    wanted = [p[0] for p in theirs if p[1] == "POSITIONAL_OR_KEYWORD"]
    if order[: len(wanted)] != wanted:
        return f"has the order {order} for {wanted}"
    extra = required([p for p in ours if p[0] not in {q[0] for q in theirs}])
    return f"requires {extra}" if extra else None


def same(theirs: Parameter, ours: Parameter) -> bool:
    """Tell whether two parameters of one name are alike; "..." stands for any default."""
    if theirs[1] != ours[1]:
        return False
    if theirs[2] is None or ours[2] is None:
        return theirs[2] is ours[2]
    return "..." in (theirs[2], ours[2]) or theirs[2] == ours[2]


def required(parameters: list[Parameter]) -> str:
    """Return the names of the parameters without a default."""
    return ", ".join(n for n, kind, d in parameters if d is None and kind not in VARIABLE)


def shown(parameter: Parameter) -> str:
    """Return a parameter as it is written in a signature."""
    name, kind, default = parameter
    text = name if default is None else f"{name}={default}"
    return f"{text} ({kind.lower()})" if kind != "POSITIONAL_OR_KEYWORD" else text


def file_of(ratchet: str, namespace: str) -> pathlib.Path:
    """Return the file of a namespace in `missing` or `signatures`."""
    return HERE / ratchet / f"{namespace}.txt"


def read(ratchet: str, namespace: str) -> set[str]:
    """Return the paths that a file lists; a namespace without a file lists none."""
    file = file_of(ratchet, namespace)
    lines = file.read_text().splitlines() if file.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


def write(ratchet: str, namespace: str, paths: Iterable[str]) -> None:
    """Write a file, one path a line, sorted; an empty one is deleted."""
    file, lines = file_of(ratchet, namespace), sorted(paths)
    if lines:
        file.write_text("".join(f"{line}\n" for line in lines))
    else:
        file.unlink(missing_ok=True)


def missing_in(namespace: str) -> set[str]:
    """Return the listed paths of a namespace that cannot be imported."""
    return {n.path for n in listed() if n.namespace == namespace and not exists(n.path)}


def differing_in(namespace: str) -> dict[str, str]:
    """Return path -> difference for the callables of a namespace that can be imported."""
    out = {}
    for name in listed():
        if name.namespace == namespace and name.signature and exists(name.path):
            found = difference(name)
            if found is not None:
                out[name.path] = found
    return out
