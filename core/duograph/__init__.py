"""duograph: a deep-learning framework with MindSpore's API and devices as plugins.

The same program runs eagerly or compiled. `import duograph as ms` is the only line that a MindSpore
script changes. Sub-packages that a program may not need are imported when they are first used.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from ._startup import without_collections as _without_collections

with _without_collections():
    from . import compat as _compat
    from . import context, dtype, ops
    from ._locks import importing as _importing
    from .autodiff.transforms import grad, jvp, value_and_grad, vjp
    from .context import *  # noqa: F403  (the names of context.__all__)
    from .dtype import *  # noqa: F403  (the names of dtype.__all__)
    from .execution.device import (
        empty_cache,
        get_current_device,
        max_memory_allocated,
        memory_allocated,
        memory_reserved,
        memory_stats,
        set_device,
        synchronize,
    )
    from .ir.optimizer import Optimizer as _Optimizer
    from .ir.optimizer import install_optimizer as _install_optimizer
    from .parameter import Parameter, ParameterTuple
    from .runtime_state import runtime_state
    from .tensor import Tensor, from_numpy, is_tensor, tensor
    from .tracebacks import install as _install_hooks
    from .version import OWN as _OWN_VERSION

__version__ = _OWN_VERSION


def _import(name: str) -> Any:
    """Import and return a submodule; a fork by another thread waits until the import has ended."""
    with _importing:
        return importlib.import_module(f"{__name__}.{name}")


@functools.cache
def _load_compiler() -> Any:
    return _import("compiler")


@functools.cache
def _load_passes() -> _Optimizer:
    installed: _Optimizer = _import("passes").INSTALLED
    return installed


runtime_state.load_compiler = _load_compiler
_install_hooks()
_install_optimizer(_load_passes)

# Sub-modules imported at their first use, so that `import duograph` stays fast.
_MODULES = (
    "amp", "boost", "common", "communication", "dataset", "log", "mindrecord", "mint", "nn",
    "experimental", "numpy", "onnx", "parallel", "scipy", "train",
    "compat",
    "autodiff", "backend", "device_context", "errors", "execution", "hal", "passes", "profiler",
    "run", "runtime", "version",
)  # fmt: skip
_NAMES = {
    "Model": "train",
    "LossMonitor": "train",
    "TimeMonitor": "train",
    "Callback": "train",
    "ModelCheckpoint": "train",
    "CheckpointConfig": "train",
    "RunContext": "train",
    "recompute": "nn.recompute",
    "data_sink": "train",
    "connect_network_with_dataset": "train",
    "ckpt_to_safetensors": "train",
    "safetensors_to_ckpt": "train",
    "async_ckpt_thread_status": "train",
    "save_checkpoint": "train",
    "load_checkpoint": "train",
    "load_checkpoint_async": "train",
    "load_distributed_checkpoint": "train",
    "load_segmented_checkpoints": "train",
    "load_param_into_net": "train",
    "export": "train.exported",
    "load": "train.exported",
    "FixedLossScaleManager": "amp",
    "DynamicLossScaleManager": "amp",
    "LossScaleManager": "amp",
    "build_train_network": "amp",
    "COOTensor": "ops.sparse_tensors",
    "CSRTensor": "ops.sparse_tensors",
    "RowTensor": "ops.sparse_tensors",
    "SparseTensor": "ops.sparse_tensors",
    "jacfwd": "ops",
    "jacrev": "ops",
    "vmap": "autodiff.vmap",
    "detect_anomaly": "autodiff.anomaly",
    "set_seed": "random_state",
    "get_seed": "random_state",
    "manual_seed": "random_state",
    "Generator": "random_state",
    "get_rng_state": "random_state",
    "set_rng_state": "random_state",
    "initial_seed": "random_state",
    "seed": "random_state",
    "default_generator": "random_state",
    "run_check": "installation",
    "constexpr": "ops",
    "initializer": "common.initializer",
    "jit": "compiler",
    "ms_function": "compiler",
    "jit_class": "compiler",
    "ms_class": "compiler",
    "JitConfig": "compiler",
    "mutable": "compiler",
    "lazy_inline": "compiler",
    "no_inline": "compiler",
    "jit_stats": "compiler",
    "Symbol": "symbol",
    "Layout": "parallel",
    "shard": "parallel",
    "profile": "profiler",
    "Profiler": "profiler",
    "summary": "profiler.summaries",
    **dict.fromkeys(
        (
            "Event",
            "Stream",
            "StreamCtx",
            "communication_stream",
            "current_stream",
            "default_stream",
            "dispatch_threads_num",
            "launch_blocking",
            "max_memory_reserved",
            "memory_summary",
            "reset_max_memory_allocated",
            "reset_max_memory_reserved",
            "reset_peak_memory_stats",
            "set_cpu_affinity",
            "set_cur_stream",
            "set_kernel_launch_capture",
            "set_kernel_launch_group",
            "set_memory",
        ),
        "runtime",
    ),
    **dict.fromkeys(("auc", "get_metric_fn", "names", "rearrange_inputs"), "train"),
    "get_level": "log",
    "check_custom": "conformance.custom_check",
    "check_gradient": "conformance.gradient_check",
    "check_parity": "conformance.parity",
    "_no_grad": "compat.private_training",
    "get_grad": "ops",
    "get_log_config": "log",
    **dict.fromkeys(
        (
            "QuantDtype",
            "frombuffer",
            "get_algo_parameters",
            "get_ps_context",
            "get_py_obj_dtype",
            "merge_sliced_parameter",
            "ms_memory_recycle",
            "reset_algo_parameters",
            "set_algo_parameters",
            "set_recursion_limit",
        ),
        "compat.script_settings",
    ),
}


def __getattr__(name: str) -> Any:
    """Return a submodule, or a name from one, that a program uses for the first time.

    The submodule is imported. Raises AttributeError for an unknown name.
    """
    if name in _MODULES:
        return _import(name)
    home = _NAMES.get(name) or _train_name(name)
    if home is not None:
        found = getattr(_import(home), name, None)
        if found is not None:
            globals()[name] = found
            return found
    return _compat.serve("", name)


def _train_name(name: str) -> str | None:
    """Return "train" if a name may be that of a class in the package `train`, else None.

    Callbacks and metrics are such classes. A name may be one of theirs if it begins with a capital
    letter and is not in `compat.RENAMED`, the table of names that old MindSpore versions used.
    """
    if name.startswith("_") or not name[:1].isupper() or name in _compat.RENAMED:
        return None
    return "train"


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES})
