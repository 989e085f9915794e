"""A Cell that runs a graph which was read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError, ArgumentValueError
from ..parameter import Parameter
from ..tensor import Tensor
from .cell import Cell

__all__ = ["GraphCell"]


class GraphCell(Cell):
    """Runs what `duograph.load` has read (`mindspore.nn.GraphCell`); its weights are Parameters,
    and can be trained.

    Args:
        graph: what `load` returned.
        params_init: weights by name that take the place of those in the file.

    Raises:
        TypeError: `graph` is something else, or `params_init` no dictionary of Tensors.
        ValueError: a name that is no weight of the graph, or a Tensor of another shape.
    """

    def __init__(
        self, graph: Any, params_init: Mapping[str, Any] | None = None, obf_random_seed: Any = None
    ) -> None:
        super().__init__()
        if obf_random_seed is not None:
            raise ArgumentValueError(
                "GraphCell: got obf_random_seed; graphs are not obfuscated here"
            )
        if not hasattr(graph, "replayed"):
            raise ArgumentError(
                f"GraphCell: got {type(graph).__name__}; wanted what duograph.load returns"
            )
        if params_init is not None and not isinstance(params_init, Mapping):
            raise ArgumentError(
                f"GraphCell: got {type(params_init).__name__} for params_init; wanted a dict"
            )
        for name, value in (params_init or {}).items():
            if not isinstance(value, Tensor):
                raise ArgumentError(
                    f"GraphCell: got {type(value).__name__} for {name!r}; wanted a Tensor"
                )
            if name not in graph.weights:
                raise ArgumentValueError(
                    f"GraphCell: got {name!r}; the weights of the graph are {', '.join(graph.weights) or 'none'}"
                )
            if value.shape != graph.weights[name].shape:
                raise ArgumentValueError(
                    f"GraphCell: got shape {value.shape} for {name!r}; wanted {graph.weights[name].shape}"
                )
        self.graph = graph
        for name, weight in graph.weights.items():
            value = (params_init or {}).get(name, weight)
            made = Parameter(Tensor(value), name=name, requires_grad=weight.requires_grad)
            self._params.add_unnamed(name, made)

    def construct(self, *inputs: Any) -> Any:
        return self.graph.run(tuple(self._params.values()), inputs)
