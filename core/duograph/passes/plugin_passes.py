"""Passes that plugins bring: run after ours, verified, and left out with a warning once one fails."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import context
from ..backend import registry
from ..errors import GraphError
from ..ir.graph import Graph
from ..ir.verify import verify

__all__ = ["plugin_passes", "apply", "name_of"]

Pass = Callable[[Graph], Graph]

# What each hook returned, by its implementation.
_found: dict[Any, tuple[tuple[str, Pass], ...]] = {}
# Passes that failed; `_found` keeps them alive.
_failed: set[int] = set()


def plugin_passes() -> list[tuple[str, Pass]]:
    """(name of the plugin, pass), in the order of the plugins' names, then in that of their lists."""
    hooks = registry.plugin_hooks().duograph_passes.get_hookimpls()
    if not hooks:
        return []
    return [
        item
        for hook in sorted(hooks, key=lambda h: str(h.plugin_name))
        for item in _listed(hook)
        if id(item[1]) not in _failed
    ]


def _listed(hook: Any) -> tuple[tuple[str, Pass], ...]:
    listed = _found.get(hook)
    if listed is None:
        name = str(hook.plugin_name)
        listed = ()
        try:
            listed = tuple((name, step) for step in hook.function())
        except Exception as error:  # noqa: BLE001 (a plugin may fail in any way; its words are kept)
            _report(f"duograph_passes of the plugin {name!r}", error)
        _found[hook] = listed
    return listed


def apply(plugin: str, step: Pass, graph: Graph) -> Graph:
    """The graph after a plugin's pass, verified; as it was when the pass fails, which is told once
    and not tried again.

    Raises:
        GraphError: the pass failed, with `set_context(debug=True)`.
    """
    try:
        made = verify(step(graph))
        _same_signature(graph, made)
    except Exception as error:  # noqa: BLE001 (a plugin may fail in any way; its words are kept)
        _failed.add(id(step))
        _report(f"the pass {name_of(step)!r} of the plugin {plugin!r}", error)
        return graph
    return made


def name_of(step: Any) -> str:
    """What to call a pass."""
    return str(getattr(step, "__name__", type(step).__name__))


def _same_signature(before: Graph, after: Graph) -> None:
    def signature(graph: Graph) -> Any:
        types = graph.types
        return types[: graph.n_params], [types[i] for i in graph.outputs], graph.single

    if signature(before) != signature(after):
        raise GraphError(
            f"graph: got a signature of {signature(after)}; wanted that before the pass, {signature(before)}"
        )


def _report(what: str, error: Exception) -> None:
    text = f"{what} failed: {type(error).__name__}: {error}"
    if context.settings.debug:
        raise GraphError(text) from error
    warnings.warn(
        f"{text}. It is left out from now on; set_context(debug=True) raises instead",
        RuntimeWarning,
        stacklevel=2,
    )
