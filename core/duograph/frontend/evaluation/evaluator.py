"""The evaluator: an `Evaluation` with the operations that need the whole front end.

`compiler.evaluate` makes one per attempt to compile a call. Code of the framework that runs at
compile time reaches it as `builder.evaluation`. Importing this module fills the dispatch tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...nn.cell import Cell
from ...parameter import Parameter
from ...tensor import Tensor
from ...types import ValueType
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from . import (  # noqa: F401  (each fills dispatch tables)
    builtin_functions,
    calls,
    exceptions,
    expressions,
    loop_statements,
    operators,
    patterns,
    statements,
)
from .aliasing import check_not_shared
from .cells import call_cell
from .dispatch import call
from .gradients import GraphRecorded, record
from .host import append_effect, run_on_host, write_through
from .printing import print_values

__all__ = ["Evaluator"]


class Evaluator(Evaluation):
    """The evaluation of one call of a compiled function."""

    def call(self, function: Value, args: Args, kwargs: Kwargs) -> Value:
        """Call anything on values of the evaluation."""
        return call(self, function, args, kwargs)

    def before_write(self, tensor: Tensor) -> None:
        """Check that a tensor may be written in place."""
        check_not_shared(self, tensor)

    def after_write(self, tensor: Tensor) -> None:
        """Write through to the Python object that represents a tensor at run time, if any."""
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
        """Evaluate a function for its derivative; see `gradients.record`."""
        return record(self, fn, args, kwargs, positions, weights, has_aux)

    def compute_later(
        self,
        function: Callable[..., Value],
        values: Args,
        types: tuple[ValueType, ...],
        name: str,
    ) -> Value:
        """Tensors of these types that `function` computes on the host when the graph runs."""
        return run_on_host(self, function, values, {}, name, types)

    def check_later(self, check: Callable[..., None], values: Args, name: str) -> None:
        """Append a check of values that may raise when the graph runs."""
        append_effect(self, check, values, name, commit=True)

    def print_later(self, values: Args) -> None:
        """Append the printing of values."""
        append_effect(self, print_values, values, "print")

    def call_cell(self, cell: Cell, args: Args, kwargs: Kwargs) -> Value:
        """Call a Cell from code of the framework that runs at compile time."""
        return call_cell(self, cell, args, kwargs)
