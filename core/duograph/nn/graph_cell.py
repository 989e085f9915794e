"""GraphCell: the Cell that runs a graph loaded from a file.

`duograph.load` reads the graph. This module only binds the graph's weights to Parameters and runs
it; it must not read files or change the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..errors import ArgumentError, ArgumentValueError
from ..option_checks import check_options
from ..parameter import Parameter
from ..tensor import Tensor
from .cell import Cell

__all__ = ["GraphCell"]


class LoadedGraph(Protocol):
    """Protocol of a graph read from a file: named weights, and a method that runs the graph."""

    @property
    def weights(self) -> Mapping[str, Parameter]:
        """Return a loaded graph's weights by name, in the order in which `run` takes them."""

    def run(self, weights: Sequence[Parameter], inputs: Sequence[object]) -> object:
        """Run the loaded graph on its weights and the given inputs."""


class GraphCell(Cell):
    """Runs a graph read by `duograph.load` (`mindspore.nn.GraphCell`).

    The weights of the graph are Parameters of the Cell and can be trained.

    Args:
        graph: the result of `load`.
        params_init: dictionary of weights, by name, that replace those in the file.

    Raises:
        TypeError: `graph` is not a loaded graph, or `params_init` is not a dictionary of Tensors.
        ValueError: a name that is not a weight of the graph, or a Tensor of another shape.
    """

    def __init__(
        self,
        graph: LoadedGraph,
        params_init: Mapping[str, Tensor] | None = None,
        obf_random_seed: object = None,
    ) -> None:
        super().__init__()
        check_options("nn.GraphCell", obf_random_seed=obf_random_seed)
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
                    f"GraphCell: got {name!r}; the weights of the graph are "
                    f"{', '.join(graph.weights) or 'none'}"
                )
            if value.shape != graph.weights[name].shape:
                raise ArgumentValueError(
                    f"GraphCell: got shape {value.shape} for {name!r}; wanted "
                    f"{graph.weights[name].shape}"
                )
        self.graph = graph
        for name, weight in graph.weights.items():
            value = (params_init or {}).get(name, weight)
            made = Parameter(Tensor(value), name=name, requires_grad=weight.requires_grad)
            self._params.add_unnamed(name, made)

    def construct(self, *inputs: object) -> object:
        return self.graph.run(tuple(self._params.values()), inputs)
