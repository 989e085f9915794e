"""Tier 2: the fused regions of a program as C, built by the machine's compiler.

All regions of a program are printed into a few files, so that the cores build them side by side; equal sources come
from the disk cache.
"""

import warnings

from duograph.backend.codegen import C
from duograph.backend.codegen.loops import print_region
from duograph.backend.codegen.regions import overwrites, plan_region

from . import toolchain
from .regions import make_call

# Regions in one file: a compiler takes some 25 ms to start, and a few more for each.
PER_FILE = 8


def compile_regions(graphs):
    """For each region a call, or the reason why there is none."""
    found = [None] * len(graphs)
    printed = {}
    for k, graph in enumerate(graphs):
        plan = plan_region(graph)
        if plan is None:
            found[k] = "its operands do not fit one loop nest"
        else:
            name = f"region{len(printed) % PER_FILE}_{_hint(graph)}"
            printed[k] = name, print_region(C, name, plan), overwrites(plan)
    order = list(printed)
    files = [order[at : at + PER_FILE] for at in range(0, len(order), PER_FILE)]
    sources = []
    for keys in files:
        text = "\n".join(printed[k][1].text for k in keys)
        sources.append(toolchain.Source(text, C.prelude_for, C.version()))
    for keys, library in zip(files, toolchain.build_all(sources), strict=True):
        if isinstance(library, toolchain.BuildFailure):
            _say(library.reason)
        for k in keys:
            if isinstance(library, toolchain.BuildFailure):
                found[k] = library.reason
                continue
            name, function, over = printed[k]
            graph = graphs[k]
            results = [graph.types[i] for i in graph.outputs]
            found[k] = make_call(
                library.address(name), function.n, function.grain, graph.n_params, results, name,
                overwrites=over, sure=True,
            )  # fmt: skip
    return found


_said = set()


def _say(reason):
    """Warn once of a reason why something was not built; the program goes on with the kernels of its ops."""
    if reason not in _said:
        _said.add(reason)
        warnings.warn(
            f"CPU: part of a compiled function runs op by op: {reason}", RuntimeWarning, stacklevel=2
        )


def _hint(graph):
    """The last op that does something, for readers of the source and of profiles."""
    names = [node.op.name for node in graph.nodes if node.op.name not in ("fill", "reshape", "cast")]
    return names[-1] if names else "copy"


