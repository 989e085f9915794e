"""Finds the syntax tree of a Python function from its code object.

The source comes from the function's file, a notebook cell, or anything else that `linecache` knows.
`frontend.evaluation` calls `source_of`. The module parses source and must not run it.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from types import CodeType, FunctionType
from typing import Any, TypeAlias

from ..errors import UnsupportedSyntaxError
from ..tracebacks import is_internal

__all__ = ["Source", "source_of", "local_names"]

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Source:
    """The syntax tree of a Python function, with its file and the names that it binds.

    Attributes:
        node: the syntax node, a FunctionDef or Lambda.
        file: the file name, for messages.
        lines: the lines of the file.
        class_name: name of the class that defines the method, with which Python mangles private
            names; "" for other functions.
        name: the name of the function.
        locals, globals, nonlocals: the names that the function binds locally or declares.
        body: its statements; for a lambda, one `return` of its expression.
        internal: whether the function belongs to the framework.
    """

    __slots__ = (
        "node",
        "file",
        "lines",
        "class_name",
        "name",
        "locals",
        "globals",
        "nonlocals",
        "body",
        "internal",
        "_read_after_return",
    )

    def __init__(self, node: Any, file: str, lines: list[str], class_name: str) -> None:
        self.node = node
        self.file = file
        self.lines = lines
        self.class_name = class_name
        self.internal = is_internal(file)
        self.name: str = getattr(node, "name", "<lambda>")
        self.locals, self.globals, self.nonlocals = local_names(node)
        body = node.body
        if isinstance(node, ast.Lambda):
            made = ast.Return(value=body)
            body = [ast.copy_location(made, body)]
        self.body: list[ast.stmt] = body
        self._read_after_return: frozenset[str] | None = None

    @property
    def read_after_return(self) -> frozenset[str]:
        """The names that code may read after a `return` of the function.

        These are the names in the functions and generator expressions that it makes, which may
        outlive the call, and in its `finally` blocks; all names if such a block continues or leaves
        a loop, which cancels the `return`.
        """
        if self._read_after_return is None:
            self._read_after_return = _names_read_after_return(self.node)
        return self._read_after_return

    def inner(self, node: Any) -> Source:
        """Return the syntax tree of a nested function as a Source, cached on its syntax node."""
        found: Source | None = getattr(node, "_duograph_source", None)
        if found is None:
            found = node._duograph_source = Source(node, self.file, self.lines, self.class_name)
        return found


# What may run after the function that defines it has returned.
_OUTLIVING = (ast.FunctionDef, ast.Lambda, ast.GeneratorExp)


def _names_read_after_return(function: Any) -> frozenset[str]:
    late: list[ast.AST] = []
    finally_: list[ast.AST] = []
    for node in ast.walk(function):
        if isinstance(node, _OUTLIVING) and node is not function:
            late.append(node)
        elif isinstance(node, ast.Try):
            finally_ += node.finalbody
    cancelling = [n for part in finally_ for n in ast.walk(part)]
    inside = [n for part in late for n in ast.walk(part)] + cancelling
    if any(isinstance(n, (ast.Break, ast.Continue)) for n in cancelling):
        inside = list(ast.walk(function))
    return frozenset(n.id for n in inside if isinstance(n, ast.Name))


_by_code: dict[CodeType, Source] = {}
_files: dict[str, tuple[object, dict[tuple[int, str], list[FunctionNode]]]] = {}


def source_of(function: FunctionType) -> Source:
    """Return the syntax tree of a Python function as a Source; cached by code object.

    Raises:
        UnsupportedSyntaxError: the source cannot be found, or several functions in it may be this
            one.
    """
    code = function.__code__
    found = _by_code.get(code)
    if found is None:
        if len(_by_code) > 4096:
            _by_code.clear()
        found = _by_code[code] = _find(function, code)
    return found


def _find(function: FunctionType, code: CodeType) -> Source:
    """Parse the file of a function and return the Source of its definition.

    Raises:
        UnsupportedSyntaxError: the source is missing or ambiguous.
    """
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise _missing(function, code)
    found = _defined(lines, code)
    if not found:
        try:
            nodes = _index(code.co_filename, lines)
        except SyntaxError:
            nodes = _index_block(function, code)
        found = nodes.get((code.co_firstlineno, code.co_name), [])
    if not found:
        raise _missing(function, code)
    node = found[0] if len(found) == 1 else _closest(found, code)
    if node is None:
        raise UnsupportedSyntaxError(
            f"jit: got {function.__qualname__}, but {len(found)} functions of that name begin on "
            f"line {code.co_firstlineno} of {code.co_filename}, and this version of Python cannot "
            "distinguish them; wanted each on a line of its own",
            construct="source",
            remedy="Give each function a line of its own",
        )
    parts = function.__qualname__.split(".")
    class_name = parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else ""
    return Source(node, code.co_filename, lines, class_name)


def _missing(function: FunctionType, code: CodeType) -> UnsupportedSyntaxError:
    return UnsupportedSyntaxError(
        f"jit: got {function.__qualname__}, whose source cannot be found (it was compiled from "
        f"{code.co_filename!r}); wanted a function from a file, a notebook or a shell that keeps "
        "its source in `linecache`",
        construct="source",
        remedy="Put the function into a file",
    )


def _defined(lines: list[str], code: CodeType) -> list[FunctionNode]:
    """Return the syntax node of the `def` at a code object's first line, as a list of one item.

    Only that block is parsed, not the whole file; line numbers are those of the file. The list is
    empty if the line holds no `def`, or if the block of deeper indented lines does not parse
    (because a string or a bracket is still open).
    """
    first = code.co_firstlineno - 1
    if not 0 <= first < len(lines):
        return []
    depth = _depth(lines[first])
    end, begun = first, False
    while end < len(lines):
        line = lines[end].strip()
        if line and line[0] not in "#)]}" and _depth(lines[end]) <= depth:
            if begun:
                break
            begun = line.startswith(("def ", "async "))
        end += 1
    within = ["\n"] * (first - 1) + ["if True:\n"] if depth else ["\n"] * first
    try:
        tree = ast.parse("".join([*within, *lines[first:end]]))
    except SyntaxError:
        return []
    node: Any = tree.body[0].body[0] if depth and isinstance(tree.body[0], ast.If) else tree.body[0]
    return (
        [node]
        if getattr(node, "name", "") == code.co_name and not isinstance(node, ast.ClassDef)
        else []
    )


def _depth(line: str) -> int:
    """Return the indentation of a line, with tabs expanded as Python does."""
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip())


def _index(file: str, lines: list[str]) -> dict[tuple[int, str], list[FunctionNode]]:
    """Return all functions of a file, by (first line with decorators, name); cached."""
    text = "".join(lines)
    kept = _files.get(file)
    if kept is not None and kept[0] == text:
        return kept[1]
    nodes: dict[tuple[int, str], list[FunctionNode]] = {}
    _collect(ast.parse(text), nodes)
    _files[file] = (text, nodes)
    return nodes


def _collect(tree: ast.AST, nodes: dict[tuple[int, str], list[FunctionNode]]) -> None:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            nodes.setdefault((first, node.name), []).append(node)
        elif isinstance(node, ast.Lambda):
            nodes.setdefault((node.lineno, "<lambda>"), []).append(node)


def _index_block(
    function: FunctionType, code: CodeType
) -> dict[tuple[int, str], list[FunctionNode]]:
    """Return the syntax nodes of the functions in one function's source, by (first line, name).

    Only the lines of `function` are parsed. This is used if its file does not parse as a whole,
    such as a notebook cell with magics.

    Raises:
        UnsupportedSyntaxError: the source is missing or does not parse.
    """
    try:
        block, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(block)))
    except (OSError, SyntaxError):
        raise _missing(function, code) from None
    ast.increment_lineno(tree, first - 1)
    nodes: dict[tuple[int, str], list[FunctionNode]] = {}
    _collect(tree, nodes)
    return nodes


def _closest(nodes: list[Any], code: CodeType) -> FunctionNode | None:
    """Return, among functions on the same line, the syntax node of a code object, or None.

    The result is None if it cannot be decided which function the code object belongs to. From
    Python 3.11 on, the column positions in the code object decide; before that, the bytecode of
    each candidate is compared.
    """
    if hasattr(code, "co_positions"):
        positions = [
            (p[0], p[2]) for p in code.co_positions() if p[0] is not None and p[2] is not None
        ]
        for node in sorted(nodes, key=lambda n: n.end_col_offset - n.col_offset):
            body = node.body if isinstance(node, ast.Lambda) else node
            start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
            if any(start <= p < end for p in positions[1:]) and all(
                start <= p <= end for p in positions[1:] if p[1] > 0
            ):
                return node
    fitting = [
        node for node in nodes if _compiles_to(node, code)
    ]  # Python 3.10 has no column positions
    alike = {ast.dump(node) for node in fitting}
    return fitting[0] if len(alike) == 1 else None


def _compiles_to(node: FunctionNode, code: CodeType) -> bool:
    """Return whether compiling a function's syntax node produces the bytecode of a code object."""
    module = ast.parse(f"def around({', '.join(code.co_freevars)}): pass")
    around = module.body[0]
    assert isinstance(around, ast.FunctionDef)
    around.body = [ast.Expr(node) if isinstance(node, ast.Lambda) else node]
    ast.fix_missing_locations(module)
    outer = _code_in(compile(module, code.co_filename, "exec", dont_inherit=True), "around")
    made = outer and _code_in(outer, code.co_name)
    return made is not None and _meaning(made) == _meaning(code)


def _code_in(code: CodeType, name: str) -> CodeType | None:
    return next((c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name), None)


def _meaning(code: CodeType) -> object:
    """Return the parts of a code object that determine its behaviour, for comparison."""
    consts = [_meaning(c) if isinstance(c, CodeType) else (type(c), c) for c in code.co_consts]
    return code.co_code, consts, code.co_names, code.co_varnames, code.co_freevars, code.co_argcount


class _Names(ast.NodeVisitor):
    """Syntax visitor that collects the names which a function body binds or declares.

    Bodies of nested functions and classes are not visited.
    """

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.bound.add(node.name)
        for x in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if x is not None:
                self.visit(x)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for x in (*node.args.defaults, *node.args.kw_defaults):
            if x is not None:
                self.visit(x)

    def _comprehension(self, node: Comprehension) -> None:
        # its targets are local to it, but a walrus inside binds a variable of the function
        for x in ast.walk(node):
            if isinstance(x, ast.NamedExpr):
                self.bound.add(x.target.id)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Global(self, node: ast.Global) -> None:
        self.globals.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.nonlocals.update(node.names)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for a in node.names:
            self.bound.add((a.asname or a.name).split(".")[0])

    visit_ImportFrom = visit_Import

    def _match_name(self, node: Any) -> None:
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if name:
            self.bound.add(name)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = _match_name


def local_names(
    node: FunctionNode | Comprehension,
) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the local, global and nonlocal names that a function or comprehension binds."""
    names = _Names()
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        for g in node.generators:
            for x in ast.walk(g.target):
                if isinstance(x, ast.Name):
                    names.bound.add(x.id)
        return frozenset(names.bound), frozenset(), frozenset()
    a = node.args
    arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs]
    arguments += [x for x in (a.vararg, a.kwarg) if x is not None]
    names.bound.update(x.arg for x in arguments)
    for statement in [node.body] if isinstance(node, ast.Lambda) else node.body:
        names.visit(statement)
    outside = names.globals | names.nonlocals
    return frozenset(names.bound - outside), frozenset(names.globals), frozenset(names.nonlocals)
