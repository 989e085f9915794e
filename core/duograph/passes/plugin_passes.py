"""Runs the graph passes of plugins and verifies their results.

`passes` is the only caller: `clean_up` runs the passes of all plugins, and the pipeline runs those
of the graph's backend. A pass that fails is reported with a warning and never runs again. Nothing
here changes a graph except by calling these passes.
"""

from __future__ import annotations

import warnings
from typing import Any

from pluggy import HookImpl

from .. import context
from ..backend import registry
from ..errors import GraphError
from ..ir.graph import Graph
from ..ir.verify import verify
from ..types import ValueType
from .context import PassContext, PluginPass

__all__ = ["plugin_passes", "run_plugin_pass", "run_backend_passes"]

# (plugin, pass) pairs by the hook implementation that returned them.
_found: dict[HookImpl, tuple[tuple[str, PluginPass], ...]] = {}
# Identities of passes that failed; `_found` keeps the passes alive.
_failed: set[int] = set()


def plugin_passes() -> list[tuple[str, PluginPass]]:
    """Return (plugin name, pass) for each graph pass of all plugins, ordered by plugin name.

    Passes that have failed before are left out.
    """
    hooks = registry.plugin_hooks().duograph_passes.get_hookimpls()
    if not hooks:
        return []
    return [
        item
        for hook in sorted(hooks, key=lambda h: str(h.plugin_name))
        for item in _listed(hook)
        if id(item[1]) not in _failed
    ]


def _listed(hook: HookImpl) -> tuple[tuple[str, PluginPass], ...]:
    """Return the (plugin name, pass) pairs of one hook implementation; call it the first time only.

    If the call fails, the failure is reported, and the result is empty, then and later.
    """
    listed = _found.get(hook)
    if listed is None:
        name = str(hook.plugin_name)
        listed = ()
        try:
            found: Any = hook.function()
            listed = tuple((name, step) for step in found)
        except Exception as error:  # noqa: BLE001 (a plugin may fail in any way)
            _report(f"duograph_passes of the plugin {name!r}", error)
        _found[hook] = listed
    return listed


def run_plugin_pass(plugin: str, step: PluginPass, graph: Graph) -> tuple[str, Graph]:
    """Run a plugin's pass on a graph; return the pass's name in dumps and the verified new graph.

    If the pass fails or its result is invalid, a warning is given once, the graph is returned
    unchanged, and the pass never runs again.

    Raises:
        GraphError: the pass failed while `set_context(debug=True)` is set.
    """
    name = str(getattr(step, "__name__", type(step).__name__))
    shown = f"{plugin}.{name}"
    try:
        made = verify(step(graph))
        _check_signature(graph, made)
    except Exception as error:  # noqa: BLE001 (a plugin may fail in any way)
        _failed.add(id(step))
        _report(f"the pass {name!r} of the plugin {plugin!r}", error)
        return shown, graph
    return shown, made


def run_backend_passes(graph: Graph, context: PassContext) -> Graph:
    """Run the passes of the graph's backend (`Backend.passes`) in order; return the new graph."""
    for name, step in context.passes:
        if id(step) not in _failed:
            shown, graph = run_plugin_pass(name, step, graph)
            if context.watch is not None:
                context.watch(shown, graph)
    return graph


def _check_signature(before: Graph, after: Graph) -> None:
    def signature(graph: Graph) -> tuple[list[ValueType], list[ValueType], bool]:
        types = graph.types
        return types[: graph.n_params], [types[i] for i in graph.outputs], graph.single

    if signature(before) != signature(after):
        raise GraphError(
            f"graph: got a signature of {signature(after)}; wanted that before the pass, "
            f"{signature(before)}"
        )


def _report(what: str, error: Exception) -> None:
    """Warn that a part of a plugin failed and is left out; in debug mode, raise GraphError.

    `what` names the part.
    """
    text = f"{what} failed: {type(error).__name__}: {error}"
    if context.settings.debug:
        raise GraphError(text) from error
    warnings.warn(
        f"{text}. It is left out from now on; set_context(debug=True) raises instead",
        RuntimeWarning,
        stacklevel=2,
    )
