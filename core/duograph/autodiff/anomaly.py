"""`detect_anomaly`: stops a program where its first NaN or infinity appears, and names the line.

While it is on, compiled functions run uncompiled, as plain Python, and every eager op and every
step of a backward pass goes through a `_Watch` (`runtime_state.watch`). It must cost nothing while
it is off. Switching it on or off therefore discards all cached calls of ops, which are then
prepared again with or without the watch.
"""

from __future__ import annotations

import contextlib
import linecache
import math
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import context
from ..backend.observers import line_at, user_frame
from ..errors import AnomalyError, ArgumentError, ArgumentValueError
from ..op import Op
from ..op_tables import drop_tables
from ..runtime_state import runtime_state
from ..tensor import Tensor
from .tape import Node, Output, edge_type

if TYPE_CHECKING:
    from ..runtime_state import OpWatch
    from ..types import TensorType
    from .tape import Cotangent

__all__ = ["Anomaly", "AnomalyWarning", "detect_anomaly"]

# A source line of the user: file and number.
Place = tuple[str, int]
# The most callers of the line that a report names.
_MOST_PLACES = 4
_WHEN_FOUND = ("raise", "warn")


class AnomalyWarning(RuntimeWarning):
    """Warning of `detect_anomaly(on_found="warn")`: a NaN or infinity appeared."""


@dataclass(frozen=True)
class Anomaly:
    """The place where a NaN or infinity appeared first.

    Attributes:
        kind: ``"NaN"`` or ``"Inf"``.
        op: name of the op whose result, or whose gradient, has the value.
        backward: whether the value is in a gradient.
        places: the user's source lines as (file, line): the line of the op in the forward pass,
            then those of its callers.
        result: a description of the values that were computed.
        operands: a description of each value that they were computed from.
        began: True if the op itself produced the NaN or infinity. False if `kind` is "NaN" and one
            of the values that the op read, such as data or a Parameter, had a NaN already. An
            infinity in the values that the op read does not make it False.
    """

    kind: str
    op: str
    backward: bool
    places: tuple[Place, ...]
    result: str
    operands: tuple[str, ...]
    began: bool = True

    def __str__(self) -> str:
        what = f"the gradient of {self.op}" if self.backward else f"the result of {self.op}"
        if self.began:
            lines = [f"detect_anomaly: the first {self.kind} is in {what}: {self.result}"]
        else:
            lines = [
                f"detect_anomaly: {what} has {self.kind}, which was in a value that it read: "
                f"{self.result}"
            ]
        for k, (file, line) in enumerate(self.places):
            lines.append(f"  {'called from ' if k else ''}{os.path.relpath(file)}:{line}")
            source = linecache.getline(file, line).strip()
            if source:
                lines.append(f"    {source}")
        lines += [f"  {each}" for each in self.operands]
        lines.append("  " + self._remedy())
        return "\n".join(lines)

    def _remedy(self) -> str:
        if not self.began:
            return "Look for it in the data, the Parameters, or what was computed before."
        if self.backward:
            return (
                "The forward value may be finite nevertheless: keep the operand away from values "
                "where the derivative is not finite, such as 0 for sqrt and log."
            )
        return "Keep the operands away from such values: clip them, add an epsilon, lower the rate."


class detect_anomaly(contextlib.ContextDecorator):
    """Context manager, or decorator, that finds the op and line where a NaN or infinity begins.

    Within its block every op of a forward or backward pass is checked, in all threads. Compiled
    functions run line by line, so that the line is exact; the block is therefore slow. An op is
    reported if its result is not finite although its operands are; a NaN that an op reads from
    data or Parameters is reported where it is read. An infinity that an op only passes on, such as
    the -inf of a mask, is not reported. Outside the block there is no cost.

    Args:
        check_nan: look for NaN.
        check_inf: look for infinities too. False suits programs that scale their loss
            dynamically, where gradients may overflow.
        on_found: ``"raise"``, or ``"warn"`` to go on after a warning per op and line.

    Attributes:
        anomalies: list of the `Anomaly` objects that were found.

    Raises:
        AnomalyError: in the block, at the first NaN or infinity.
        TypeError: `check_nan` or `check_inf` is not a bool.
        ValueError: another `on_found`, or nothing to look for.

    Examples:
        >>> import duograph as ms
        >>> from duograph import ops
        >>> try:
        ...     with ms.detect_anomaly():
        ...         ms.grad(lambda x: ops.sqrt(x).sum())(ms.Tensor([0.0, 1.0]))
        ... except ms.errors.AnomalyError as error:
        ...     print(error.anomaly.op, error.anomaly.kind, error.anomaly.backward)
        sqrt Inf True
    """

    def __init__(
        self, check_nan: bool = True, check_inf: bool = True, on_found: str = "raise"
    ) -> None:
        for name, value in (("check_nan", check_nan), ("check_inf", check_inf)):
            if not isinstance(value, bool):
                raise ArgumentError(f"detect_anomaly: got {name}={value!r}; wanted a bool")
        if on_found not in _WHEN_FOUND:
            raise ArgumentValueError(
                f"detect_anomaly: got on_found={on_found!r}; wanted 'raise' or 'warn'"
            )
        if not (check_nan or check_inf):
            raise ArgumentValueError(
                "detect_anomaly: got check_nan=False and check_inf=False; wanted one to be True"
            )
        self._options = check_nan, check_inf, on_found
        self._before: list[tuple[OpWatch | None, bool]] = []
        self.anomalies: list[Anomaly] = []

    def __enter__(self) -> detect_anomaly:
        self._before.append((runtime_state.watch, context.settings.jit))
        context.set_context(jit=False)
        _switch(_Watch(*self._options, self.anomalies))
        return self

    def __exit__(self, *_: object) -> None:
        watch, jit = self._before.pop()
        _switch(watch)
        context.set_context(jit=jit)


def _switch(watch: OpWatch | None) -> None:
    """Make all ops report their results to `watch`, or to nothing if it is None.

    Prepared ops are discarded, so that each op is prepared again at its next call.
    """
    runtime_state.watch = watch
    drop_tables()


class Origin(NamedTuple):
    """An op that the user called, and the user's source lines of the call."""

    op: str
    places: tuple[Place, ...]


class _Inside(threading.local):
    """Per thread: the op that is running, or whose gradient is being computed; None between ops."""

    origin: Origin | None = None


class _Watch:
    """Checks the results of ops and of backward passes; implements `runtime_state.OpWatch`."""

    def __init__(
        self, check_nan: bool, check_inf: bool, on_found: str, found: list[Anomaly]
    ) -> None:
        self.check_nan, self.check_inf, self.on_found = check_nan, check_inf, on_found
        self.found = found
        self._inside = _Inside()
        self._origins: weakref.WeakKeyDictionary[Node, Origin] = weakref.WeakKeyDictionary()

    def watched(
        self, op: Op, attributes: Mapping[str, object], call: Callable[..., object]
    ) -> Callable[..., object]:
        """Return a function that runs an op and checks its results.

        The ops inside a composite op are not checked: they may compute values that the composite
        does not select. Results are not checked either if the op has no tensor as an operand, or if
        the user passed a NaN or infinity as an attribute.
        """
        deliberate = any(_has_special(v) for v in attributes.values())

        def checked(*operands: object) -> object:
            if runtime_state.watch is not self:  # prepared for a detection that has ended
                return call(*operands)
            if self._inside.origin is not None:
                results = call(*operands)
                self._remember(self._inside.origin, results)
                return results
            origin = Origin(op.name, _places())
            with self._within(origin):
                results = call(*operands)
                self._remember(origin, results)
                given = [x for x in operands if isinstance(x, Tensor)]
                if given and not deliberate:
                    self._check(origin, _parts(results), given, False)
            return results

        return checked

    def gradient(
        self,
        node: Node,
        cotangents: Sequence[Cotangent | None],
        create_graph: bool,
        sums: Sequence[Cotangent | None] = (),
    ) -> Sequence[Cotangent | None]:
        """Run one step of a backward pass, `node.plan.run(...)`, and check its gradients.

        Returns these gradients. `cotangents` are the gradients of the node's results;
        `create_graph` and `sums` are passed on to the plan.
        """
        plan = node.plan
        origin = self._origins.get(node)
        if origin is None:
            origin = Origin(getattr(plan, "name", type(plan).__name__), _places())
        with self._within(origin):
            gradients = plan.run(node, cotangents, create_graph, sums)
            types = [t.on(d) for t, d in zip(plan.result_types, plan.devices, strict=True)]
            results = [
                _tensor(edge_type(p), g)
                for p, g in zip(node.parents, gradients)
                if p is not None and g is not None
            ]
            given = [_tensor(t, c) for t, c in zip(types, cotangents) if c is not None]
            self._check(origin, results, given, True)
        return gradients

    @contextlib.contextmanager
    def _within(self, origin: Origin) -> Iterator[None]:
        before, self._inside.origin = self._inside.origin, origin
        try:
            yield
        finally:
            self._inside.origin = before

    def _remember(self, origin: Origin, results: object) -> None:
        """Store which op and source lines a recorded call came from, to check its gradient.

        Nothing is stored if the call was not recorded.
        """
        if not runtime_state.derivatives:
            return
        for each in _parts(results):
            edge = getattr(each, "_edge", None)
            node = edge.node if isinstance(edge, Output) else edge
            if isinstance(node, Node):
                self._origins.setdefault(node, origin)

    def _check(
        self, origin: Origin, results: Sequence[Any], given: Sequence[Tensor], backward: bool
    ) -> None:
        """Report the first result that has a NaN or infinity which `given` does not explain.

        A NaN or infinity in `given` explains an infinity. A NaN in `given` explains a NaN, provided
        that an earlier NaN or infinity has been reported.

        Args:
            origin: the op, and the lines of its call.
            results: the values to check.
            given: the values from which they were computed.
            backward: whether the values are gradients.
        """
        for each in results:
            nan, inf = _special(each)
            if not (nan and self.check_nan) and not (inf and self.check_inf):
                continue
            before = [_special(x) for x in given]
            had_nan, had_inf = any(n for n, _ in before), any(i for _, i in before)
            kind = "NaN" if nan and self.check_nan else "Inf"
            if kind == "Inf" and (had_inf or had_nan):
                continue
            if kind == "NaN" and had_nan and self.found:
                continue  # it follows from a NaN that was reported
            began = not (kind == "NaN" and had_nan)
            label = "gradient that reached it" if backward else "operand"
            operands = tuple([
                f"{label}{f' {k}' if len(given) > 1 else ''}: {_described(x)}"
                for k, x in enumerate(given)
            ])  # fmt: skip
            self._report(
                Anomaly(kind, origin.op, backward, origin.places, _described(each), operands, began)
            )
            return

    def _report(self, anomaly: Anomaly) -> None:
        """Raise AnomalyError, or warn if this op and line has not been reported yet."""
        known = any(_same_place(anomaly, a) for a in self.found)
        self.found.append(anomaly)
        if self.on_found == "raise":
            raise AnomalyError(str(anomaly), anomaly)
        if not known:
            warnings.warn(str(anomaly), AnomalyWarning, stacklevel=5)


def _same_place(a: Anomaly, b: Anomaly) -> bool:
    return (a.op, a.backward, a.places[:1]) == (b.op, b.backward, b.places[:1])


def _parts(results: object) -> tuple[object, ...]:
    return results if isinstance(results, tuple) else (results,)


def _tensor(type_: TensorType, value: Cotangent) -> Tensor:
    """Return a cotangent, which is a tensor or a buffer handle, as a tensor."""
    return value if isinstance(value, Tensor) else Tensor._make(type_, value)


def _special(t: object) -> tuple[bool, bool]:
    """Return two bools: whether a tensor has a NaN, and whether it has an infinity."""
    if not isinstance(t, Tensor) or t._type.dtype.kind not in "fc":
        return False, False
    values = t._values()
    if np.isfinite(values).all():
        return False, False
    return bool(np.isnan(values).any()), bool(np.isinf(values).any())


def _has_special(value: object) -> bool:
    """Return whether an attribute is, or contains, a NaN or infinity that the user wrote."""
    if isinstance(value, (tuple, list)):
        return any(_has_special(v) for v in value)
    return isinstance(value, float) and not math.isfinite(value)


def _described(t: Tensor) -> str:
    """Return a text with the dtype and shape of a tensor and a summary of its values."""
    values = t._values()
    text = f"{t._type.dtype.name} {t.shape}"
    if t._type.dtype.kind not in "fc" or not values.size:
        return text
    nans, infs = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    finite = values[np.isfinite(values)]
    parts = [f"{n:,} {word}" for n, word in ((nans, "NaN"), (infs, "Inf")) if n]
    if parts:
        parts[-1] += f" of {values.size:,}"
    if finite.size and t._type.dtype.kind == "f":
        wide = finite.astype(np.float64)
        parts.append(f"finite values from {wide.min():.4g} to {wide.max():.4g}")
    return f"{text}, {', '.join(parts)}"


def _places() -> tuple[Place, ...]:
    """Return the user's source lines on the call stack, from the innermost one to its callers.

    There are at most `_MOST_PLACES` of them.
    """
    found: list[Place] = []
    frame = user_frame(sys._getframe(1))
    while frame is not None and len(found) < _MOST_PLACES:
        found.append(line_at(frame))
        frame = user_frame(frame.f_back)
    return tuple(found)
