"""Graph passes, and the order in which they run.

A pass is a function from graph to graph; related passes share a module. A pass keeps the
parameters, the number and order of the results, and every bit of their values. As an exception,
passes of levels above O0 may change the order in which floats are summed and the sign of zeros.
Every pass also rewrites the sub-graphs of nodes, each sub-graph only once. `PIPELINE` lists the
passes in order; those in `CLEANUP` run first, and again after some others. `execution.lower` runs
the pipeline through `ir.optimizer`.

How to add a rewrite:

- A rewrite that replaces one call, keeps every bit and matches a pattern of the call and of the
  calls that compute its operands, such as `neg(neg(x)) -> x`, is one rule in the table of
  `simplify`. The rule then runs at every jit level.
- A rewrite needs a pass of its own, listed in `CLEANUP` or `PIPELINE`, if it changes bits, looks
  at the readers of a value, replaces several nodes together, depends on the backend
  (`PassContext`), or must run at one position of the pipeline.
- `rewriting` rebuilds the whole graph with new value ids; a rule may append several nodes, and the
  nodes that its `call` appends go through the rules again. `replacing` exchanges one node for one
  call with the same result types, keeps all value ids, and can refuse a replacement. Both leave
  dead nodes to `dead_code`.
- Tests of a pass belong in `tests/ir/test_passes.py`: the text of a graph before and after.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Collection, Hashable
from typing import Any

from .. import context as settings_of
from ..backend import added_kernels, registry
from ..backend.costs import DEFAULT_COSTS
from ..backend.plugin_checks import call_text, checked_costs, error_text
from ..backend.prepared_calls import added_call, prepared_call
from ..backend.protocol import Backend
from ..errors import BackendError
from ..execution.optional_methods import answer
from ..ir.builder import expand
from ..ir.control import is_single_op
from ..ir.graph import Attributes, Graph
from ..ir.optimizer import Optimizer, Watch
from ..ir.substitution import hinted
from ..ir.verify import verify
from ..op import Op
from ..types import Device, TensorType
from .activation_gradients import GRADIENTS, save_activation_derivatives
from .channels_last import convert_to_channels_last
from .common_subexpressions import merge_common_subexpressions
from .compare_labels import compare_labels
from .context import Pass, PassContext
from .dead_code import remove_dead_code
from .decompose import AT_LABELS, decompose_composites, decompose_the_rest
from .fusion import fuse
from .keep_added_kernels import keep_added_kernels
from .matched_ops import attention, attention_grad, checked_labels, matmul, pad_constant
from .matmul import fold_transposes, merge_matmul_sums
from .overlap_collectives import SPLIT, overlap_collectives
from .padded_sums import concatenate_padded_sums
from .plugin_passes import plugin_passes, run_backend_passes, run_plugin_pass
from .self_attention import use_self_attention
from .simplify import simplify
from .split_reductions import split_reductions
from .subgraphs import ops_of

__all__ = [
    "context_of",
    "CLEANUP",
    "INSTALLED",
    "PIPELINE",
    "Pass",
    "PassContext",
    "Watch",
    "body_of",
    "clean_up",
    "run",
]

# The passes that run on every graph first, and again on graphs that later passes have rewritten.
CLEANUP = (
    Pass("simplify", simplify),
    Pass("merge_common_subexpressions", merge_common_subexpressions),
    Pass("remove_dead_code", remove_dead_code),
)


def clean_up(graph: Graph, context: PassContext) -> Graph:
    """Run `CLEANUP` and then all plugins' graph passes on a graph; return the new graph.

    A graph of one node without sub-graphs is returned unchanged. Eager mode makes such a graph for
    each op.
    """
    if is_single_op(graph):
        return graph
    watched = _is_watched(context)
    for step in CLEANUP:
        graph = step.function(graph, context)
        if watched:
            _show(step.name, graph, context)
    for plugin, function in plugin_passes():
        name, graph = run_plugin_pass(plugin, function, graph)
        if watched:
            _show(name, graph, context)
    return graph


PIPELINE = (
    Pass("clean_up", clean_up),
    Pass("keep_added_kernels", keep_added_kernels, "O1"),
    Pass("decompose_composites", decompose_composites, "O1"),
    Pass("keep_added_kernels", keep_added_kernels, "O1", after="decompose_composites"),
    Pass("compare_labels", compare_labels, "O1", concerns=(checked_labels,)),
    Pass("decompose_the_rest", decompose_the_rest, "O1", concerns=AT_LABELS),
    Pass("fold_transposes", fold_transposes, "O1", concerns=(matmul,)),
    Pass("concatenate_padded_sums", concatenate_padded_sums, "O1", concerns=(pad_constant,)),
    Pass("merge_matmul_sums", merge_matmul_sums, "O1", concerns=(matmul,)),
    Pass("use_self_attention", use_self_attention, "O1", concerns=(attention, attention_grad)),
    Pass("clean_up", clean_up, "O1"),
    Pass("channels_last", convert_to_channels_last, "O1"),
    Pass("clean_up", clean_up, "O1", after="channels_last"),
    Pass("save_activation_derivatives", save_activation_derivatives, "O1", concerns=GRADIENTS),
    Pass("backend_passes", run_backend_passes, "O1"),
    Pass("split_reductions", split_reductions, "O1"),
    Pass("fuse", fuse, "O1"),
    Pass("overlap_collectives", overlap_collectives, concerns=SPLIT),
)


def run(graph: Graph, context: PassContext | None = None) -> Graph:
    """Run the graph passes of a jit level (O0 to O2) on a graph; return the new graph.

    The level is that of `context`; without a context it is O0. With `set_context(debug=True)` the
    verifier checks the graph before the first pass and after each one. It always checks the graph
    after a plugin's pass. `context.watch` is called with the graph before the first pass ("read"),
    after each pass, and at the end ("done").
    """
    context = context or PassContext()
    watched = _is_watched(context)
    if watched:
        _show("read", graph, context)
    changed: set[str] = set()
    ops: set[Op] | None = None  # the ops of `graph`; None if not computed
    for step in PIPELINE:
        if step.level > context.level or (step.after and step.after not in changed):
            continue
        if step.concerns is not None and ops is None:
            ops = ops_of(graph)
        if ops is None or step.concerns is None or not ops.isdisjoint(step.concerns):
            found = step.function(graph, context)
            if found is not graph:
                changed.add(step.name)
                graph, ops = found, None
        # clean_up has reported the passes that it ran
        if watched and step.function is not clean_up:
            _show(step.name, graph, context)
    if context.watch is not None:
        context.watch("done", graph)
    return graph


def _is_watched(context: PassContext) -> bool:
    """Return whether the verifier or a graph dump must see the graph after each pass."""
    return settings_of.settings.debug or context.watch is not None


def _show(name: str, graph: Graph, context: PassContext) -> None:
    """Verify a graph if the debug setting is on; pass it to `context.watch`, if there is one.

    The debug setting is that of `set_context(debug=True)`. `name` is the name of the pass that made
    the graph, or "read" for the graph before all passes.
    """
    if settings_of.settings.debug:
        verify(graph)
    if context.watch is not None:
        context.watch(name, graph)


# Traced body of an op -> the settings at the clean-up, and the cleaned-up body (None if equal).
_bodies: weakref.WeakKeyDictionary[Graph, tuple[Hashable, Graph | None]] = (
    weakref.WeakKeyDictionary()
)


def body_of(op: Op, types: tuple[TensorType | None, ...], attributes: Attributes) -> Graph:
    """Return the graph of an op's body, or of its decomposition rule, after the passes of O0.

    O0 is the lowest jit level. The parameters of the graph have the given types; None is an absent
    optional operand. The graph is cached.
    """
    return _cleaned(expand(op, types, attributes))


def _cleaned(graph: Graph) -> Graph:
    """Return `graph`, the traced body of an op, after the passes of jit level O0, from a cache."""
    # in debug mode the verifier checks bodies, so those from before must not be used
    depends = (settings_of.settings.debug, tuple(plugin_passes()))
    known = _bodies.get(graph)
    if known is None or known[0] != depends:
        made = run(graph)
        known = _bodies[graph] = (depends, None if made is graph else made)
    return known[1] or graph


def decomposition(
    backend: Backend, op: Op, types: tuple[TensorType | None, ...], attributes: Attributes
) -> Graph | None:
    """Return the graph of simpler ops that computes an op on a backend, or None if there is none.

    The graph is the backend's own decomposition of the op, or else the op's body or decomposition
    rule, simplified by the passes of jit level O0. Its parameters have the given types; None is an
    absent optional operand.

    Raises:
        BackendError: the backend's decomposition failed, or computes results of other types.
    """
    rule = backend.decompositions.get(op.name)
    if rule is not None:
        graph = _backend_decomposition(backend, rule, op, types, attributes)
        if graph is not None:
            return _cleaned(graph)
    if op.body is None and op.decompose_rule is None:
        return None
    return body_of(op, types, attributes)


class _Declined(Exception):
    """Raised while a backend's decomposition of an op is traced, if it returned NotImplemented.

    A decomposition returns NotImplemented for operands that it does not support.
    """


@functools.lru_cache(maxsize=1024)
def _declining(rule: Callable[..., object]) -> Callable[..., object]:
    """Return a decomposition like `rule` that raises `_Declined` where `rule` declines.

    A backend's decomposition declines operands that it does not support by returning
    NotImplemented. The exception ends the tracing of such a call.
    """

    @functools.wraps(rule)
    def traced(*operands: object, **attributes: object) -> object:
        found = rule(*operands, **attributes)
        if found is NotImplemented:
            raise _Declined
        return found

    return traced


def _backend_decomposition(
    backend: Backend,
    rule: Callable[..., object],
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Attributes,
) -> Graph | None:
    """Trace a backend's decomposition of an op; return None if it does not support these operands.

    Raises:
        BackendError: the decomposition failed, or computes results of other types.
    """

    try:
        graph = expand(op, types, attributes, _declining(rule))
    except _Declined:
        return None
    except Exception as error:
        raise BackendError(
            f"{call_text(op.name, types)}: its decomposition of the {backend.name} backend raised "
            f"{error_text(error)}"
        ) from error
    found = tuple(graph.types[i] for i in graph.outputs)
    wanted = op.infer_types(types, attributes)
    if found != wanted:
        got, want = (", ".join(map(repr, kinds)) for kinds in (found, wanted))
        raise BackendError(
            f"{call_text(op.name, types)}: its decomposition of the {backend.name} backend "
            f"returned {got}; wanted {want}"
        )
    return graph


def context_of(
    device: Device,
    level: str,
    watch: Watch | None = None,
    notes: list[str] | None = None,
    state: Collection[int] = (),
) -> PassContext:
    """Return the facts that passes of a jit level above O0 may use (`PassContext`).

    Args:
        device: the device that will run the graph; the facts come from its backend.
        level: the jit level, "O1" or "O2".
        watch: function to call with the name of each pass and the graph after it, or None.
        notes: list to which passes append lines for the user, or None.
        state: indices of the graph parameters that receive Parameters which the graph does not
            write.
    """
    backend = registry.backend(device.name)

    def claims(op: Op, types: tuple[TensorType | None, ...], attributes: Attributes) -> bool:
        types, attributes = hinted(types, attributes)
        return not op.host and (
            prepared_call(backend, op, types, attributes, device.index) is not None
        )

    def added(op: Op, types: tuple[TensorType | None, ...], attributes: Attributes) -> str | None:
        types, attributes = hinted(types, attributes)
        call = added_call(backend, op, types, attributes, device.index)
        return None if call is None else call.owner

    costs = answer(backend, "costs", lambda: checked_costs(backend.costs(device.index)))
    return PassContext(
        level=level,
        claims=claims,
        added=added if added_kernels.listed(backend.name) else None,
        decomposition=functools.partial(decomposition, backend),
        decomposes=frozenset(backend.decompositions),
        epilogues=backend.epilogues,
        decomposed=backend.decomposed,
        costs=DEFAULT_COSTS if isinstance(costs, str) else costs,
        passes=tuple([(backend.name, step) for step in backend.passes]),
        state=frozenset(state),
        notes=notes,
        watch=watch,
    )


class _Installed:
    """Adapter through which lowering calls the graph passes (see `ir.optimizer.Optimizer`)."""

    decomposition = staticmethod(decomposition)

    @staticmethod
    def optimize(
        graph: Graph,
        device: Device,
        level: str,
        watch: Watch | None,
        notes: list[str],
        state: Collection[int],
    ) -> Graph:
        if level == "O0":
            return run(graph, None if watch is None else PassContext(watch=watch))
        return run(graph, context_of(device, level, watch, notes, state))


INSTALLED: Optimizer = _Installed()
