"""The evaluator: an `Evaluation` that can also call functions, run statements and call Cells.

`compiler.evaluate` makes one evaluator per attempt to compile a call. Code of the framework that
runs at compile time reaches it as `builder.evaluation`. Importing this module imports all modules
that register functions in the dispatch tables (syntax node -> function). An evaluator must not be
used again after its attempt.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence

from ...ir.builder import GraphTensor
from ...nn.cell import Cell
from ...parameter import Parameter
from ...tensor import Tensor
from ...types import ValueType
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from . import (  # noqa: F401  (each fills dispatch tables)
    builtin_functions,
    calls,
    class_questions,
    dataclass_functions,
    exceptions,
    expressions,
    imports,
    loop_statements,
    operators,
    order_functions,
    patterns,
    statements,
)
from .aliasing import check_not_shared
from .cells import call_cell, without_effects
from .dispatch import call
from .gradients import GraphRecorded, record
from .host import append_effect, run_on_host, write_through
from .identity import check_hash
from .printing import print_values

__all__ = ["Evaluator"]


class Evaluator(Evaluation):
    """State and operations of tracing one call of a user's function into a graph."""

    def call(self, function: Value, args: Args, kwargs: Kwargs) -> Value:
        """Trace a call of any callable into the graph and return the result of the call."""
        return call(self, function, args, kwargs)

    def check_hash(self, tensor: GraphTensor) -> None:
        """Raise if a graph tensor that is to be hashed may be a Tensor from outside the function.

        A dict or set from outside may already hold such a Tensor under its own hash, which the
        graph tensor does not have.
        """
        check_hash(self, tensor)

    def before_write(self, tensor: Tensor) -> None:
        """Raise if an in-place write to a tensor could also change another variable's value."""
        check_not_shared(self, tensor)

    def after_write(self, tensor: Tensor) -> None:
        """Append a node that stores a tensor's new value in its Python object, if there is one.

        Python code that an earlier graph node ran may hold such an object.
        """
        write_through(self, tensor)

    # ---- services for ops and layers of the framework ------------------------------------------

    def record(
        self,
        fn: Callable[..., Value],
        args: Sequence[Value],
        kwargs: Kwargs,
        positions: Sequence[int],
        weights: Sequence[Parameter],
        has_aux: bool,
    ) -> GraphRecorded:
        """Trace the call `fn(*args, **kwargs)` and linearise it; return the traced function.

        Its forward graph is inserted into the current graph. The result holds the backward graph
        and the forward values which the backward graph takes.

        Args:
            fn, args, kwargs: the call of the function.
            positions: indices in `args` of the differentiated arguments.
            weights: the differentiated Parameters.
            has_aux: whether only the first item of the result is differentiated.
        """
        return record(self, fn, args, kwargs, positions, weights, has_aux)

    def compute_later(
        self,
        function: Callable[..., Value],
        values: Args,
        types: tuple[ValueType, ...],
        name: str,
    ) -> Value:
        """Append a node that calls a Python function at run time; return its result tensors.

        Args:
            function: the function; it is called with `values` when the graph runs.
            values: its arguments, nested structures of graph values and constants.
            types: types of the tensors that it returns.
            name: name of the call, for messages.
        """
        return run_on_host(self, function, values, {}, name, types)

    def check_later(self, check: Callable[..., None], values: Args, name: str) -> None:
        """Append a node that calls `check(*values)` when the graph runs; the check may raise.

        `name` is the name of the call, for messages.
        """
        append_effect(self, check, values, name, commit=True)

    def print_later(self, values: Args) -> None:
        """Append a node that prints values, in MindSpore's graph format, when the graph runs."""
        append_effect(self, print_values, values, "print")

    @contextlib.contextmanager
    def inside_part(self, part: int) -> Iterator[None]:
        """Return a context manager in which new nodes belong to the micro-batch `part`."""
        outer, self.calls.part = self.calls.part, part
        try:
            yield
        finally:
            self.calls.part = outer

    def call_cell(self, cell: Cell, args: Args, kwargs: Kwargs, recomputed: bool = False) -> Value:
        """Trace a call of a Cell that framework code makes at compile time; return its result.

        Args:
            cell: the Cell.
            args, kwargs: the arguments.
            recomputed: whether the call is under gradient checkpointing (`recompute`), which runs
                the Cell again in the backward pass. The Cell must then have no side effects.
        """
        run = functools.partial(call_cell, self, cell, args, kwargs)
        return without_effects(self, cell, run) if recomputed else run()
