"""The plans by which the tape computes the gradient of one recorded call.

`GraphPlan` differentiates the graph of an eager op or of a compiled function. `PythonPlan` calls a
Python function: a Cell's own `bprop`, or that of `custom_gradient`. `tape.backward` runs the plans.
A plan must never change the residuals of a tape node, because another backward pass may read them.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..backend import observers
from ..backend.protocol import Handle
from ..errors import GradientError, MissingRuleError
from ..execution.executable import Executable
from ..execution.kernel_failures import name_graph
from ..execution.lower import lower, lower_program
from ..ir.basic_ops import zeros_of
from ..ir.graph import Graph
from ..recorded_tensors import is_recorded
from ..tensor import Tensor
from ..types import Device, TensorType, ValueType
from .linearize import Linearized, linearize
from .replay import replay
from .tape import Node, Output, edge_of, fitted, handle_of, with_present_edge

if TYPE_CHECKING:
    from .tape import Cotangent

__all__ = ["GraphPlan", "OwnResult", "PythonPlan", "without_rule", "zeros_on"]

# A linearization, its lowered backward graph, and the positions of the residuals that this takes
# among those of the node (None: all).
Prepared: TypeAlias = "tuple[Linearized, Executable, tuple[int, ...] | None]"


_plans: weakref.WeakSet[GraphPlan] = weakref.WeakSet()


def _exchange() -> None:
    """Exchange the two forms of every plan's backward function, one of which reports to observers.

    Observers are objects to which every kernel that runs is reported. This function runs when the
    first one is added or the last one removed, so that a backward pass is reported even if the
    forward pass was not.
    """
    for plan in list(_plans):
        plan.fast, plan._other_fast = plan._other_fast, plan.fast


observers.on_change.append(_exchange)


class GraphPlan:
    """Computes the gradient of a recorded eager op or compiled function from its graph.

    The graph is linearized once for the operands that are differentiated. Its backward graph is
    lowered once for each combination of results that have a cotangent.

    In eager mode, each op of a function adds its cotangents to those that its operands already
    have. With `continues_sums`, the plan of a compiled function takes these sums and adds to them
    op by op, as eager mode does. If it summed its own contributions first, rounding would differ.
    An eager op, even a composite one, is one term of a sum.

    Attributes:
        graph: the graph of the op or function.
        level: the optimisation level of the backward graph.
        wanted: for each operand, whether it is differentiated.
        device: the device of the call; `devices` repeats it for each result.
        name: name of the op or function, for messages.
        n_results, result_types: number and types of the results.
        full: the linearization for the case that all results have a cotangent.
        residual_types: types of the residuals of `full`.
        fast, fast_index, fast_wrt, continues_sums: attributes that `tape.Plan` describes.
    """

    def __init__(
        self,
        graph: Graph,
        wanted: tuple[bool, ...],
        device: Device,
        name: str,
        level: str = "O0",
        continues_sums: bool = False,
    ) -> None:
        self.graph = graph
        self.level = level
        self.wanted = wanted
        self.device = device
        self.devices = (device,) * len(graph.outputs)
        self.name = name
        self.n_results = len(graph.outputs)
        self.result_types: tuple[Any, ...] = tuple(graph.types[i] for i in graph.outputs)
        # The forward pass keeps the residuals for all cotangents; fewer cotangents need a subset.
        all_present = tuple(True for _ in graph.outputs)
        self.full = linearize(graph, wanted, all_present)
        self.residual_types = tuple(self.full.forward.types[i] for i in self.full.residuals)
        self._prepared_by_mask: dict[tuple[tuple[bool, ...], tuple[bool, ...]], Prepared] = {}
        self._all_present = all_present
        self.fast: Callable[..., Handle] | None = None
        self.fast_index: int | None = None
        self.fast_wrt = self.full.wrt
        self.continues_sums = continues_sums
        if (
            graph.single and not continues_sums
        ):  # a tuple of one result gets a list of one cotangent instead
            self.fast = self._lower_and_call
        self._other_fast = self.fast
        _plans.add(self)

    def failed(self, error: Exception) -> None:
        """Say in an error that `fast` raised which gradient it was to compute."""
        name_graph(error, self.full.backward, self.device, self.name)

    def _lower_and_call(self, *handles: Handle) -> Handle:
        """Lower the backward graph, store the function as `fast`, call it and return its results.

        Lowering is put off until the first use, because most plans of a program that does not train
        never run. `handles` are the buffers of the residuals and of the cotangent.
        """
        back = self.full.backward
        if len(self.full.wrt) == 1:
            back = dataclasses.replace(back, single=True)
            self.fast_index = self.full.wrt[0]
        self.fast = lower(back, self.device, level=self.level)
        return self.fast(*handles)

    def _prepared(self, present: tuple[bool, ...], summed: tuple[bool, ...]) -> Prepared:
        """Return (linearization, lowered backward graph, residuals) for some cotangents, cached.

        The residuals are given as positions among those of `full`; None stands for all of them.

        Args:
            present: for each result, whether it has a cotangent.
            summed: for each operand, whether the backward graph adds to a sum of cotangents.
        """
        found = self._prepared_by_mask.get((present, summed))
        if found is None:
            pick: tuple[int, ...] | None
            if present == self._all_present and True not in summed:
                lin, pick = self.full, None
            else:
                lin = linearize(self.graph, self.wanted, present, summed or None)
                position = {key: k for k, key in enumerate(self.full.keys)}
                pick = tuple(position[key] for key in lin.keys)
            found = (lin, lower_program(lin.backward, self.device, level=self.level), pick)
            self._prepared_by_mask[present, summed] = found
        return found

    def run(
        self,
        node: Node,
        cotangents: Sequence[Cotangent | None],
        create_graph: bool,
        sums: Sequence[Cotangent | None] = (),
    ) -> Sequence[Cotangent | None]:
        """Return the cotangents of a recorded call's operands, computed from those of its results.

        `cotangents` has None for a result without one. `sums` are the cotangents that the operands
        have so far, or empty. If `sums` is given, the results are these sums with the call's own
        contributions added to them. Cotangents are tensors with `create_graph`, otherwise buffer
        handles.
        """
        present = tuple([c is not None for c in cotangents])
        lin, executable, pick = self._prepared(present, tuple([c is not None for c in sums]))
        residuals = node.residuals
        if pick is not None:
            residuals = tuple([residuals[i] for i in pick])
        given = [c for c in (*cotangents, *sums) if c is not None]
        found: Sequence[Cotangent | None]
        if create_graph:
            found = self._replayed(node, lin, residuals, given)
        else:
            if node.deep:
                residuals = [r._buf if isinstance(r, (Tensor, OwnResult)) else r for r in residuals]
            try:
                found = executable.form.run(*residuals, *given)
            except Exception as error:
                name_graph(error, lin.backward, self.device, self.name)
                raise
        wrt = lin.wrt
        if len(wrt) == len(node.parents):
            return found
        out: list[Cotangent | None] = [None] * len(node.parents)
        for i, value in zip(wrt, found, strict=True):
            out[i] = value
        return out

    def _replayed(
        self, node: Node, lin: Linearized, residuals: Sequence[Cotangent], given: Sequence[Tensor]
    ) -> Sequence[Tensor]:
        """Run the backward graph op by op, so that an enclosing derivative records each op.

        Args:
            node: the tape node, which has the residuals.
            lin: the linearization whose backward graph runs.
            residuals, given: the arguments of that graph: residuals, and cotangents.

        Returns:
            the cotangents that the graph outputs, as tensors.
        """
        types = [lin.forward.types[i] for i in lin.residuals]
        values = [self._as_tensor(node, r, t) for r, t in zip(residuals, types, strict=True)]
        return replay(lin.backward, [*values, *given], self.device)

    def _as_tensor(self, node: Node, residual: Cotangent, type_: ValueType) -> Tensor:
        """Return a residual as a Tensor whose use an enclosing derivative can record.

        Args:
            node: the tape node that stores the residual.
            type_: type of the residual, which is needed for a buffer handle.
        """
        if isinstance(residual, OwnResult):
            made = Tensor._make(residual.type, residual._buf)
            made._edge = residual.edge_in(node)
            return made
        if isinstance(residual, Tensor):
            return residual
        if not isinstance(type_, TensorType):
            raise GradientError(
                f"{self.name}: got a pullback to differentiate that was made before, of a compiled "
                "function with a loop or recursion; wanted the call of vjp inside the function "
                "that is differentiated"
            )
        return Tensor._make(type_.on(self.device), residual)


class OwnResult:
    """A residual that is a result of the same tape node that stores it.

    Storing the tensor itself would make a reference cycle: tensor, edge, node, residuals. This
    object has only the result's type, its buffer, and its index among the results (None for a
    single result), with a weak reference to its edge, which has the gradient hooks.
    """

    __slots__ = ("type", "_buf", "index", "_edge_of")

    def __init__(self, type_: TensorType, handle: Handle, index: int | None) -> None:
        self.type = type_
        self._buf = handle
        self.index = index
        self._edge_of: Callable[[], Output | None] = lambda: None

    def recorded_as(self, edge: Output) -> None:
        """Set the edge of the result, if it is one of several."""
        self._edge_of = weakref.ref(edge)

    def edge_in(self, node: Node) -> Node | Output:
        """Return the edge of the result of `node`, the tape node that stores it.

        If no tensor or node refers to the edge any more, the result is a new one.
        """
        return node if self.index is None else self._edge_of() or Output(node, self.index)


class PythonPlan:
    """Computes the gradient of a recorded call by a Python function of tensors.

    The function is called as `function(create_graph, *cotangents)`, with zeros for absent
    cotangents. It returns one gradient or None for each operand. `result_types` and `parent_types`
    are the types of the call's results and operands, with their devices.
    """

    def __init__(
        self,
        function: Callable[..., Sequence[Tensor | None]],
        result_types: tuple[TensorType, ...],
        parent_types: tuple[TensorType | None, ...],
        name: str,
    ) -> None:
        self.function = function
        self.result_types = result_types
        self.parent_types = parent_types
        self.n_results = len(result_types)
        self.devices = tuple([t.committed_device for t in result_types])
        self.name = name
        self.fast: Callable[..., Handle] | None = None
        self.fast_index: int | None = None
        self.fast_wrt: tuple[int, ...] = ()
        self.continues_sums = False

    def failed(self, error: Exception) -> None:
        """Leave an error of the user's function as it is."""

    def run(
        self,
        node: Node,
        cotangents: Sequence[Cotangent | None],
        create_graph: bool,
        sums: Sequence[Cotangent | None] = (),
    ) -> Sequence[Cotangent | None]:
        """Call the Python function with the cotangents of a call's results; return the gradients.

        There is one gradient or None for each operand. Cotangents and gradients are tensors with
        `create_graph`, otherwise buffer handles. `sums` is ignored.

        Raises:
            GradientError: the function returned a wrong number of gradients.
        """
        given = []
        for c, t in zip(cotangents, self.result_types, strict=True):
            if c is None:
                given.append(zeros_on(t))
            else:
                # a new tensor: the function may write to it
                given.append(with_present_edge(c) if create_graph else Tensor._make(t, c))
        found = self.function(create_graph, *given)
        if len(found) != len(node.parents):
            raise GradientError(
                f"{self.name}: returned {len(found)} gradients, wanted {len(node.parents)}"
            )
        fit = fitted if create_graph else handle_of
        return [
            None if g is None or want is None else fit(g, want)
            for g, want in zip(found, self.parent_types, strict=True)
        ]


def without_rule(
    results: Tensor | tuple[Tensor, ...], operands: Sequence[Tensor | None], error: MissingRuleError
) -> Tensor | tuple[Tensor, ...]:
    """Record the results of an op without a gradient rule, so that a backward pass raises `error`.

    The error is raised when a backward pass reaches one of the results. Results of integer and bool
    dtypes are not recorded. Nothing is recorded if no operand is recorded. Returns the results.
    """
    parents = [x for x in operands if x is not None and is_recorded(x)]
    outs = results if isinstance(results, tuple) else (results,)
    if not parents:
        return results

    def refuse(create_graph: bool, *cotangents: Tensor) -> Sequence[Tensor | None]:
        raise error

    plan = PythonPlan(refuse, tuple([t._type for t in outs]), (None,) * len(parents), str(error))
    level = max(x._type.level for x in parents)
    node = Node(plan, tuple([edge_of(x) for x in parents]), (), level > 1)
    for i, t in enumerate(outs):
        if t._type.dtype.kind in "fc":
            t._type = t._type.on(t._type.device, level)
            t._edge = node if len(outs) == 1 else Output(node, i)
    return results


def zeros_on(type_: TensorType) -> Tensor:
    """Return a tensor of zeros of a given type, on its device."""
    made = zeros_of(type_)
    if made._type.device is not type_.device:
        made = made.move_to(repr(type_.device))
    return made
