"""The table of options: which work, which have no meaning here, which are refused.

`option_checks` warns and raises as the table says, `docs/options.md` is printed from it, and the
tests call every row. An argument that the table does not list is used by the body of its function;
a test reads the sources to prove it. The module is a leaf: anything may import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["MOOT", "OPTIONS", "REFUSED", "WORKS", "Option", "defaults_of", "options_of"]

WORKS, MOOT, REFUSED = "works", "no meaning", "refused"


class Option(NamedTuple):
    """One row of the table of options that public callables accept.

    Attributes:
        owner: the public callable that takes the option, as written after ``duograph.``.
        name: its keyword; "" for a callable that as a whole has no meaning here.
        status: WORKS, MOOT (the option has no meaning here, and one warning says so) or REFUSED.
        about: what the option does, why it has no meaning here, or what to use instead.
        value: Python source of a value other than the default; the tests pass it.
        default: the value that changes nothing.
    """

    owner: str
    name: str
    status: str
    about: str
    value: str = "1"
    default: object = None


def _rows(status: str, owner: str, *rows: tuple[object, ...]) -> Iterator[Option]:
    """Yield an `Option` for each tuple (name, about, value, default) of one callable.

    Args:
        status: the status of all these options.
        owner: the callable.
        rows: the tuples; value and default may be left out.
    """
    for name, about, *rest in rows:
        yield Option(owner, str(name), status, str(about), *rest)  # type: ignore[arg-type]


_RANKS = "says how training steps combine the gradients of several ranks"
_STATE = "says how ranks share the state and the update of an optimiser"
_BY_LAUNCHER = "the launcher of the ranks connects them"
_HOST = "objects are in host memory"
_BY_ENGINE = "the communication engine decides"
_ONE = "one process runs on one device, so nothing is distributed"
# optimiser primitives; they update their Parameters in one step, as a lock would have them do
_LOCKED_PRIMITIVES = (
    "Adam", "AdamNoUpdateParam", "AdamWeightDecay", "ApplyAdagradDA", "ApplyAdamWithAmsgrad",
    "ApplyAdamWithAmsgradV2", "ApplyCenteredRMSProp", "ApplyFtrl", "ApplyKerasMomentum",
    "ApplyProximalAdagrad", "ApplyRMSProp", "FusedSparseAdam", "SparseApplyProximalAdagrad",
    "SparseApplyRMSProp",
)  # fmt: skip
_LOCK = "an update is never seen half done"
_MEMORY = "memory is allocated as programs need it"
_TUNE = "`duograph tune` measures the kernels of a device"
_CACHE = "compiled code is always kept; DUOGRAPH_CACHE_DIR and DUOGRAPH_CACHE_LIMIT control it"
_DUMP = "save_graphs=2 writes the graphs, and forward hooks see the values"
_PROFILE = "profiler.profile records a part of a program"
_ASCEND_COUNTERS = "it reads counters of Ascend chips"
_WATCHED = "a profile watches kernels, copies and compilations; tools of the system watch the rest"
_SINK = "batches are fed one by one"
_FORMAT = "the content of a file tells its format"
_REDUNDANT = "one process holds all values, so a file has no redundant ones"
_INTEGRATED = "one process holds all values, so a file always has whole Parameters"
_WHOLE = "slices of Parameters are not put together; give unified_safetensors_dir"
_BOOST = "no algorithm changes the training; use amp_level for mixed precision"
_COMPILED = "there is one way of compiling"
_FUSION = 'jit_level="O1", the default, fuses ops'
_SUMMARY = "no summary is written from inside a network; use train.SummaryRecord"
_NO_GRAPH = "no graph is written"
_MOVED = "the data is there when the call returns"

_CONTEXT = (
    *_rows(
        WORKS, "set_context",
        ("mode", "GRAPH_MODE compiles every Cell that is called from outside", "ms.GRAPH_MODE", 1),
        ("device_target", "the backend of new tensors", "'CPU'"),
        ("device_id", "which device of that backend", "0", 0),
        ("pynative_synchronize", "wait for the device after each op, so that errors name it",
         "True", False),
        ("deterministic", "results never depend on load, with either value", "'ON'", "OFF"),
        ("debug", "check what gradient rules and kernels return", "True", False),
        ("check_bprop", "check the number, shapes and dtypes that a Cell's bprop returns", "True",
         False),
        ("max_call_depth", "how deep a compiled function calls itself; 1000 at most", "10", 1000),
        ("communication_timeout", "seconds for which a collective waits for others", "5", 300.0),
        ("engine_sums", "let the communication engine choose the order of sums", "True", False),
        ("host_fallback", "what an op without a kernel does", "'off'", "backend"),
        ("jit", "False runs compiled functions line by line", "False", True),
        ("stale_captures", "what a changed captured value does", "'error'", "warn"),
        ("jit_level", "level of compiled functions that name none", "'O0'", ""),
        ("jit_config", "a JitConfig or a dictionary of its options", "{'jit_level': 'O0'}"),
        ("jit_syntax_level", "STRICT refuses what only Python can run", "ms.STRICT", 2),
        ("save_graphs", "write the graphs of later compilations", "1", 0),
        ("save_graphs_path", "the folder to write them to", "'graphs'", "."),
    ),
    *_rows(
        MOOT, "set_context",
        ("enable_graph_kernel", _FUSION, "True", False),
        ("graph_kernel_flags", _FUSION, "'--opt_level=2'", ""),
        ("reserve_class_name_in_scope", "graphs name source lines, not scopes", "False", True),
        ("max_device_memory", _MEMORY, "'2GB'", "1024GB"),
        ("mempool_block_size", _MEMORY, "'2GB'", "1GB"),
        ("variable_memory_max_size", _MEMORY, "'1GB'", "30GB"),
        ("memory_optimize_level", "the memory of every compiled program is planned", "'O1'", "O0"),
        ("memory_offload", "values stay on their device; `move_to` moves one", "'ON'", "OFF"),
        ("enable_mem_reuse", "the memory of every compiled program is planned", "False", True),
        ("enable_auto_mixed_precision", "use amp.auto_mixed_precision or amp_level", "True", False),
        ("enable_ge", "that engine belongs to Ascend devices", "True", False),
        ("enable_reduce_precision", "no op narrows a dtype by itself", "False", True),
        ("auto_tune_mode", _TUNE, "'GA'", "NO_TUNE"),
        ("aoe_tune_mode", _TUNE, "'online'", ""),
        ("aoe_config", _TUNE, "{}"),
        ("enable_dump", _DUMP, "True", False),
        ("save_dump_path", _DUMP, "'dump'", "."),
        ("env_config_path", _DUMP, "'dump.json'", ""),
        ("enable_profiling", _PROFILE, "True", False),
        ("profiling_options", _PROFILE, "'trace'", ""),
        ("print_file_path", "prints go to standard output; pass print(file=...)", "'log'", ""),
        ("enable_sparse", "there are no sparse tensors", "True", False),
        ("grad_for_scalar", "numbers get no gradient; pass a Tensor", "True", False),
        ("enable_compile_cache", _CACHE, "True", False),
        ("compile_cache_path", _CACHE, "'cache'", "."),
        ("runtime_num_threads", "kernels use one thread per core that the process may use; "
         "taskset limits them", "2", 0),
        ("inter_op_parallel_num", "ops run one after the other, each on all cores", "2", 0),
        ("ascend_config", "it configures hardware that no backend here drives", "{}"),
        ("gpu_config", "it configures libraries that no backend here uses", "{}"),
        ("op_timeout", "an op ends with a result or an error", "60", 900),
        ("enable_loop_sink", _SINK, "False", True),
        ("enable_task_sink", _SINK, "False", True),
        ("disable_format_transform", "layouts never change results", "True", False),
        ("support_binary", "compiling needs the source of a function", "True", False),
        ("exec_order", "ops run in the order of the program", "'dfs'", "bfs"),
        ("debug_level", "errors always name the source line; use debug=True", "1", 0),
    ),
    *_rows(
        REFUSED, "set_context",
        ("precompile_only", "use Cell.compile, which compiles without running", "True", False),
    ),
    *_rows(
        WORKS, "set_auto_parallel_context",
        ("parallel_mode", _RANKS, "ms.ParallelMode.DATA_PARALLEL", "stand_alone"),
        ("gradients_mean", _RANKS, "True", False),
        ("parameter_broadcast", _RANKS, "True", False),
        ("enable_parallel_optimizer", _STATE, "True", False),
        ("parallel_optimizer_config", _STATE, "{'parallel_optimizer_threshold': 0}"),
        ("device_num", "must be the number of ranks, where gradients are combined", "8", 1),
        ("global_rank", "is recorded; the launcher numbers the ranks", "1", 0),
        ("dataset_strategy", "what a rank passes to code that is divided among ranks",
         "'full_batch'", "data_parallel"),
        ("full_batch", "every rank passes all samples to code that is divided", "True", False),
    ),
    *_rows(
        MOOT, "set_auto_parallel_context",
        ("gradient_fp32_sync", _ONE, "False", True),
        ("search_mode", _ONE, "'sharding_propagation'", "recursive_programming"),
        ("auto_parallel_search_mode", _ONE, "'sharding_propagation'", "recursive_programming"),
        ("strategy_ckpt_load_file", _ONE, "'f'", ""),
        ("strategy_ckpt_save_file", _ONE, "'f'", ""),
        ("enable_alltoall", _ONE, "True", False),
        ("all_reduce_fusion_config", _ONE, "[1]"),
        ("pipeline_stages", _ONE, "2", 1),
        ("pipeline_config", _ONE, "{}"),
        ("pipeline_scheduler", _ONE, "'gpipe'", "1f1b"),
        ("pipeline_result_broadcast", _ONE, "True", False),
        ("grad_accumulation_step", _ONE, "2", 1),
        ("comm_fusion", _ONE, "{}"),
        ("mirror_mean", _ONE, "True", False),
        ("communi_parallel_mode", _ONE, "'no_group_parallel'", "all_group_parallel"),
        ("optimizer_weight_shard_size", _ONE, "2", -1),
        ("optimizer_weight_shard_aggregated_save", _ONE, "True", False),
        ("sharding_propagation", _ONE, "True", False),
        ("strategy_ckpt_config", _ONE, "{}"),
        ("group_ckpt_save_file", _ONE, "'f'", ""),
    ),
)  # fmt: skip

_COMPILE = (
    *_rows(
        WORKS, "jit",
        ("function", "what to compile", "lambda x: x"),
        ("fn", "older name of function", "lambda x: x"),
        ("jit_level", "O0 runs kernels of eager mode, O1 fuses, O2 moves loops too", "'O0'", ""),
        ("fullgraph", "refuse what only Python can run", "True", False),
        ("dynamic", "when sizes become symbolic, so that one program serves many", "1", None),
        ("backend", "the device that the function runs on", "'CPU'", ""),
        ("jit_config", "a JitConfig or a dictionary of its options", "{'jit_level': 'O0'}"),
        ("jit_syntax_level", "STRICT refuses what only Python can run", "'STRICT'", ""),
        ("input_signature", "shapes and dtypes that the arguments must have",
         "(ms.Tensor(shape=[None], dtype=ms.float32),)"),
    ),
    *_rows(
        MOOT, "jit",
        ("capture_mode", _COMPILED + ", from the source", "'trace'", "ast"),
        ("hash_args", "captured values are compared by what they are", "[1]"),
        ("debug_level", "errors always name the source line", "'DEBUG'", "RELEASE"),
        ("exc_mode", _COMPILED, "'sink'", "auto"),
        ("exec_mode", _COMPILED, "'sink'", "auto"),
        ("infer_boost", _COMPILED, "'on'", "off"),
        ("combine", _COMPILED, "True", False),
        ("mode", _COMPILED, "'PIJit'", "PSJit"),
    ),
    *_rows(
        WORKS, "JitConfig",
        ("jit_level", "level of the function", "'O0'", ""),
        ("jit_syntax_level", "STRICT refuses what only Python can run", "'STRICT'", ""),
    ),
    *_rows(
        MOOT, "JitConfig",
        ("exc_mode", _COMPILED, "'sink'", "auto"),
        ("exec_mode", _COMPILED, "'sink'", "auto"),
        ("debug_level", "errors always name the source line", "'DEBUG'", "RELEASE"),
        ("infer_boost", _COMPILED, "'on'", "off"),
    ),
    *_rows(
        MOOT, "ms_function",
        ("hash_args", "captured values are compared by what they are", "[1]"),
    ),
    *_rows(MOOT, "mutable", ("dynamic_len", "each length is compiled on its own", "True", False)),
    *_rows(MOOT, "lazy_inline", ("", "every Cell is compiled into the graph of its caller")),
    *_rows(MOOT, "no_inline", ("", "every function is compiled into the graph of its caller")),
    *_rows(MOOT, "set_memory", ("", "every device has an allocator of its own")),
    *_rows(MOOT, "set_cpu_affinity", ("", "threads are those of the backend")),
    *_rows(MOOT, "set_kernel_launch_capture", ("", _COMPILED)),
    *_rows(MOOT, "set_kernel_launch_group", ("", _COMPILED)),
    *_rows(MOOT, "dispatch_threads_num", ("", _COMPILED)),
    *_rows(
        MOOT, "constexpr",
        ("get_instance", "the function itself is returned", "False", True),
        ("name", "errors name the function itself", "'half'"),
        ("reuse_result", "each compilation calls the function", "False", True),
        ("check", "arguments that are known only when the program runs are refused", "False", True),
    ),
)  # fmt: skip

_MODES = ("update", "add", "sub", "mul", "div", "max", "min")
_OPS = (
    *[
        row
        for mode in _MODES
        for kind in ("scatter", "scatter_nd")
        for row in _rows(WORKS, f"ops.{kind}_{mode}", ("use_locking", _LOCK, "True", False))
    ],
    *_rows(
        WORKS, "ops.index_add",
        ("use_lock", _LOCK, "False", True),
        ("check_index_bound", "indices are always checked", "False", True),
    ),
    *_rows(WORKS, "ops.topk", ("sorted", "the elements always come in order", "False", True)),
    *_rows(WORKS, "Tensor.topk", ("sorted", "the elements always come in order", "False", True)),
    *_rows(WORKS, "Tensor.sort", ("stable", "the sort is always stable", "False", True)),
    *_rows(WORKS, "Tensor.argsort", ("stable", "the sort is always stable", "False", True)),
    *_rows(WORKS, "Tensor.copy_", ("non_blocking", _MOVED, "True", False)),
    *_rows(WORKS, "Tensor.data_sync", ("blocking", _MOVED, "False", True)),
    *[
        row
        for name in ("Conv2D", "Conv2DBackpropInput", "Conv2DTranspose", "Conv2DBackpropFilter",
                     "Conv3D", "Conv3DTranspose")
        for row in _rows(MOOT, f"ops.{name}", ("mode", "it names no other convolution", "0", 1))
    ],
    *_rows(
        MOOT, "ops.DepthwiseConv2dNative",
        ("mode", "it names no other convolution", "1", 3),
        ("group", "every channel is a group of its own", "2", 1),
    ),
    *[
        row
        for name in ("AllReduce", "AllGather", "ReduceScatter", "Broadcast")
        for row in _rows(WORKS, f"ops.{name}", ("group", "every group is this one process", "'g'",
                                               "hccl_world_group"))
    ],
    *_rows(WORKS, "ops.depend", ("expr", "the caller has evaluated it before", "x + 1")),
    *_rows(
        WORKS, "ops.flash_attention_score",
        ("inner_precise", "sums have the precision of float32 at least", "1", 0),
    ),
    *_rows(
        WORKS, "ops.matrix_diag",
        ("align", "one diagonal has no shorter one to align with", "'LEFT_LEFT'", "RIGHT_LEFT"),
    ),
    *_rows(
        WORKS, "ops.matrix_set_diag",
        ("align", "one diagonal has no shorter one to align with", "'LEFT_LEFT'", "RIGHT_LEFT"),
    ),
    *_rows(
        WORKS, "ops.matrix_diag_part",
        ("align", "one diagonal has no shorter one to align with", "'LEFT_LEFT'", "RIGHT_LEFT"),
        ("padding_value", "one diagonal needs no padding", "1", 0),
    ),
    *_rows(
        MOOT, "Tensor",
        ("const_arg", "every Tensor argument of a compiled function is an input", "True", False),
    ),
    *_rows(
        MOOT, "ops.randperm",
        ("offset", "the random state moves on by itself at every call", "1", 0),
    ),
    *_rows(
        MOOT, "ops.MultitypeFuncGraph",
        ("read_value", "Parameters are passed as they are", "True", False),
    ),
    *_rows(MOOT, "ops.HookBackward", ("cell_id", "a hook needs no name", "'cell'", "")),
    *_rows(MOOT, "ops.Custom", ("reg_info", "a Python function needs no description", "{}")),
    *_rows(
        MOOT, "ops.Primitive.add_prim_attr",
        ("", "an op has no attributes beside the arguments of its class"),
    ),
    *_rows(MOOT, "ops.Primitive.set_device", ("", "an op runs on the device of its operands")),
    *_rows(MOOT, "ops.Primitive.set_stage", ("", "a pipeline has one process")),
    *_rows(MOOT, "ops.Primitive.place", ("", "every op runs in the process that calls it")),
    *_rows(
        MOOT, "ops.Primitive.recompute",
        ("", "a single op is not computed again; Cell.recompute and ms.recompute work"),
    ),
    *_rows(
        REFUSED, "ops.dropout",
        ("inplace", "assign the result: x = ops.dropout(x)", "True", False),
    ),
    *[
        row
        for name in ("ScalarSummary", "TensorSummary", "HistogramSummary", "ImageSummary")
        for row in _rows(MOOT, f"ops.{name}", ("", _SUMMARY))
    ],
)  # fmt: skip

_BUFFERS = "the buffer of a Tensor never changes, so an operand cannot be overwritten"
_FINITE = "decompositions on the host refuse what is not finite, other functions return it"


def _scipy(name: str, *more: tuple[object, ...], operand: str = "a") -> Iterator[Option]:
    """Yield the options of a function of `scipy.linalg` that exist only because SciPy has them."""
    overwrite = (f"overwrite_{operand}", _BUFFERS, "True", False)
    finite = ("check_finite", _FINITE, "False", True)
    yield from _rows(MOOT, f"scipy.linalg.{name}", overwrite, finite, *more)


_SCIPY = (
    *_scipy("inv"),
    *_scipy("cholesky"),
    *_scipy("cho_factor"),
    *_scipy("cho_solve", operand="b"),
    *_scipy("lu_factor"),
    *_scipy("lu"),
    *_scipy("solve_triangular", ("debug", "there is nothing to switch on", "1"), operand="b"),
    *_scipy(
        "eigh",
        ("overwrite_b", _BUFFERS, "True", False),
        ("turbo", "it speeds up the generalised problem, which is not offered", "False", True),
    ),
    *_rows(
        MOOT, "scipy.optimize.line_search",
        ("old_old_fval", "the first step is 1", "ms.Tensor(1.0)"),
    ),
    *_rows(
        REFUSED, "scipy.optimize.minimize",
        ("hess", "BFGS approximates the Hessian", "identity"),
        ("hessp", "BFGS approximates the Hessian", "identity"),
        ("bounds", "substitute variables, such as x = ops.sigmoid(y)", "[(0, 1)]"),
        ("constraints", "add a penalty to the function", "identity", ()),
        ("callback", "print in the function", "identity"),
    ),
)  # fmt: skip

_LAYERS = (
    *_rows(
        MOOT, "Parameter",
        ("layerwise_parallel", _ONE, "True", False),
        ("storage_format", "a backend chooses the layout of its buffers", "'NC1HWC0'", ""),
    ),
    *_rows(
        WORKS, "Parameter",
        ("parallel_optimizer", "whether ranks may share its update", "False", True),
    ),
    *_rows(MOOT, "set_algo_parameters", ("", "no parallel strategy is searched for")),
    *_rows(MOOT, "nn.Cell.set_data_parallel", ("", _ONE)),
    *_rows(MOOT, "nn.Cell.init_parameters_data", ("auto_parallel_mode", _ONE, "True", False)),
    *_rows(
        MOOT, "nn.Cell.recompute",
        ("mp_comm_recompute", _ONE, "False", True),
        ("parallel_optimizer_comm_recompute", _ONE, "True", False),
        ("recompute_slice_activation", _ONE, "True", False),
    ),
    *_rows(
        REFUSED, "nn.Cell.recompute",
        ("output_recompute", "recompute the Cell that holds this one", "True", False),
    ),
    *_rows(
        WORKS, "recompute",
        ("use_reentrant", "the block is run again, with either value", "False", True),
    ),
    *_rows(
        REFUSED, "recompute",
        ("output_recompute", "recompute the Cell that holds this one", "True", False),
        ("context_fn", "enter the contexts in the construct of the Cell", "print"),
    ),
    *_rows(
        WORKS, "nn.Identity",
        ("args", "any are taken, so that Identity can stand for another layer", "1"),
        ("kwargs", "any are taken, so that Identity can stand for another layer", "1"),
    ),
    *_rows(MOOT, "nn.Dropout", ("dtype", "the result has the dtype of the input", "ms.float16",
                                "float32")),
    *_rows(WORKS, "nn.Dropout", ("keep_prob", "takes effect only without p", "0.9", 0.5)),
    *_rows(
        WORKS, "nn.SyncBatchNorm",
        ("process_groups", "lists the ranks that share their statistics", "[[0]]"),
    ),
    *_rows(MOOT, "mint.nn.SyncBatchNorm", ("process_group", _ONE, "'hccl_world_group'")),
    *_rows(
        MOOT, "mint.distributed.init_process_group",
        ("init_method", _BY_LAUNCHER, "'tcp://127.0.0.1:1'"), ("store", _BY_LAUNCHER),
        ("group_name", _BY_LAUNCHER, "'world'", ""), ("pg_options", _BY_ENGINE),
        ("device_id", _BY_ENGINE, "0"),
    ),
    *_rows(
        MOOT, "mint.distributed.new_group",
        ("timeout", "the setting communication_timeout holds for all groups"),
        ("pg_options", _BY_ENGINE),
        ("use_local_synchronization", "only the members wait for each other", "True", False),
    ),
    *_rows(MOOT, "mint.distributed.barrier", ("device_ids", _BY_ENGINE, "[0]")),
    *_rows(MOOT, "mint.distributed.broadcast_object_list", ("device", _HOST, "'CPU'")),
    *_rows(MOOT, "mint.distributed.send_object_list", ("device", _HOST, "'CPU'")),
    *_rows(MOOT, "mint.distributed.recv_object_list", ("device", _HOST, "'CPU'")),
    *_rows(WORKS, "mint.sort", ("stable", "the sort is always stable", "True", False)),
    *_rows(WORKS, "mint.argsort", ("stable", "the sort is always stable", "True", False)),
    *_rows(
        WORKS, "nn.DistributedGradReducer",
        ("parameters", "only their number matters: gradients are bucketed by size", "[]"),
        ("mean", _RANKS, "True"),
        ("degree", "divides the sum, in place of the number of ranks", "4"),
        ("fusion_type", "buckets are formed by size", "2", 1),
        ("group", "names the ranks that combine their gradients", "'nccl_world_group'", ""),
    ),
    *_rows(MOOT, "nn.Conv2dBnAct", ("after_fake", "layers are never quantised", "False", True)),
    *_rows(MOOT, "nn.DenseBnAct", ("after_fake", "layers are never quantised", "False", True)),
    *_rows(
        WORKS, "nn.TimeDistributed",
        ("reshape_with_axis", "the layer is called once for each slice, with the same result", "1"),
    ),
    *_rows(
        WORKS, "nn.TrainOneStepWithLossScaleCell.start_overflow_check",
        ("pre_cond", "the caller has evaluated it before", "None"),
    ),
    *_rows(
        WORKS, "nn.TrainOneStepWithLossScaleCell.get_overflow_status",
        ("status", "the caller has evaluated it before", "None"),
    ),
    *_rows(REFUSED, "nn.GraphCell", ("obf_random_seed", "graphs are not obfuscated", "3")),
    *_rows(
        WORKS, "nn.Adam",
        ("use_locking", _LOCK, "True", False),
        ("use_lazy", "gradients are dense, so every row is updated", "True", False),
    ),
    *_rows(
        MOOT, "nn.PipelineCell",
        ("stage_config", _ONE, "{'net': 0}"), ("segment_config", _ONE, "{'net': 0}"),
    ),
    *_rows(MOOT, "nn.Adam", ("use_offload", "updates run on the device", "True", False)),
    *_rows(WORKS, "nn.RMSProp", ("use_locking", _LOCK, "True", False)),
    *[
        row
        for name in _LOCKED_PRIMITIVES
        for row in _rows(WORKS, f"ops.{name}", ("use_locking", _LOCK, "True", False))
    ],
    *_rows(WORKS, "nn.FTRL", ("use_locking", _LOCK, "True", False)),
)  # fmt: skip

_ROWS = "worker processes send rows through pipes, which have no limit"
_TUNED = "the number of workers is what you set"
_HOST = "transforms run on the host"
_DATASETS = (
    *_rows(MOOT, "dataset.Dataset.batch", ("max_rowsize", _ROWS, "6")),
    *_rows(MOOT, "dataset.Dataset.map", ("max_rowsize", _ROWS, "6"), ("offload", _HOST, "True")),
    *_rows(
        REFUSED, "dataset.Dataset.map",
        ("cache", "give the cache to the source", "object()"),
    ),
    *_rows(MOOT, "dataset.GeneratorDataset", ("max_rowsize", _ROWS, "6")),
    *_rows(MOOT, "dataset.vision.Pad.device", ("device_target", _HOST, "'Ascend'", "CPU")),
    *_rows(MOOT, "dataset.config.set_enable_shared_mem", ("", _ROWS)),
    *_rows(MOOT, "dataset.config.set_auto_offload", ("", _HOST)),
    *_rows(MOOT, "dataset.config.set_enable_autotune", ("", _TUNED)),
    *_rows(MOOT, "dataset.config.set_autotune_interval", ("", _TUNED)),
    *_rows(MOOT, "dataset.config.set_dynamic_shape", ("", "rows may always differ in shape")),
    *_rows(MOOT, "dataset.config.set_fast_recovery", ("", "there is one way to skip rows")),
    *_rows(MOOT, "dataset.config.set_monitor_sampling_interval", ("", _TUNED)),
    *_rows(MOOT, "dataset.config.set_numa_enable", ("", "threads are not bound to memory nodes")),
    *_rows(MOOT, "dataset.config.set_sending_batches", ("", "batches are fed one by one")),
    *_rows(MOOT, "dataset.config.set_iterator_mode", ("", "rows are converted one by one")),
)  # fmt: skip

_ENCRYPTION = (
    ("enc_key", "encrypt the file; needs `pip install duograph[encryption]`", "bytes(16)"),
    ("enc_mode", "AES-GCM, AES-CBC or SM4-CBC", "'AES-CBC'", "AES-GCM"),
)
_DECRYPTION = (
    ("dec_key", "key of an encrypted file", "bytes(16)"),
    ("dec_mode", "mode of an encrypted file", "'AES-CBC'", "AES-GCM"),
)
_CHECKPOINTS = (
    ("integrated_save", _INTEGRATED, "False", True),
    ("remove_redundancy", _REDUNDANT, "True", False),
)
_TRAINING = (
    *_rows(WORKS, "save_checkpoint", *_ENCRYPTION, _CHECKPOINTS[0]),
    *_rows(
        REFUSED, "save_checkpoint",
        ("incremental", "every file holds all values", "True", False),
    ),
    *_rows(WORKS, "CheckpointConfig", *_ENCRYPTION, *_CHECKPOINTS),
    *_rows(
        WORKS, "CheckpointConfig",
        ("save_checkpoint_seconds", "takes effect only with save_checkpoint_steps=0", "30", 0),
        ("keep_checkpoint_per_n_minutes", "takes effect only with keep_checkpoint_max=0", "5", 0),
    ),
    *_rows(
        REFUSED, "CheckpointConfig",
        ("incremental", "every file holds all values", "True", False),
    ),
    *_rows(WORKS, "load_checkpoint", ("strict_load", "takes effect only with net", "True", False)),
    *_rows(
        WORKS, "data_sink",
        ("input_signature", "takes effect only with jit_config",
         "(ms.Tensor(shape=[None], dtype=ms.int64),)"),
    ),
    *_rows(
        WORKS, "load_checkpoint", *_DECRYPTION, _CHECKPOINTS[1],
        ("format", _FORMAT, "'safetensors'", "ckpt"),
    ),
    *_rows(WORKS, "load_param_into_net", _CHECKPOINTS[1]),
    *_rows(MOOT, "ckpt_to_safetensors", ("processes_num", "files are converted in turn", "4", 1)),
    *_rows(MOOT, "safetensors_to_ckpt", ("processes_num", "files are converted in turn", "4", 1)),
    *_rows(
        REFUSED, "load_distributed_checkpoint",
        ("checkpoint_filenames", _WHOLE, "['a.ckpt']"),
        ("predict_strategy", _WHOLE, "{}"),
        ("train_strategy_filename", _WHOLE, "'strategy.ckpt'"),
    ),
    *_rows(
        MOOT, "load_distributed_checkpoint",
        ("max_process_num", "files are read in turn", "4", 64),
    ),
    *_rows(WORKS, "export", *_ENCRYPTION),
    *_rows(
        REFUSED, "export",
        ("dataset", "put the preprocessing into the network", "object()"),
        ("customized_func", "use enc_key and enc_mode", "print"),
        ("obf_config", "graphs are not obfuscated", "{}"),
        ("incremental", "every file holds the whole graph", "True", False),
    ),
    *_rows(WORKS, "load", *_DECRYPTION),
    *_rows(
        REFUSED, "load",
        ("dec_func", "use dec_key and dec_mode", "print"),
        ("obf_func", "graphs are not obfuscated", "print"),
    ),
    *_rows(MOOT, "Model", ("boost_level", _BOOST, "'O1'", "O0")),
    *_rows(
        WORKS, "Model",
        ("loss_scale_manager", "scales the loss", "ms.FixedLossScaleManager()"),
        ("keep_batchnorm_fp32", "overrides the setting of the level", "True"),
    ),
    *_rows(WORKS, "Model", ("eval_indexes", "takes effect only with eval_network", "[0, 1, 2]")),
    *_rows(MOOT, "build_train_network", ("boost_level", _BOOST, "'O1'", "O0")),
    *_rows(
        WORKS, "build_train_network",
        ("loss_scale_manager", "scales the loss", "ms.FixedLossScaleManager()"),
        ("keep_batchnorm_fp32", "overrides the setting of the level", "True"),
    ),
    *_rows(MOOT, "Model.train", ("dataset_sink_mode", _SINK, "True", False)),
    *_rows(
        WORKS, "Model.train",
        ("sink_size", "takes effect only with dataset_sink_mode=True", "1", -1),
    ),
    *_rows(
        WORKS, "Model.build",
        ("sink_size", "one batch tells the shapes of all", "1", -1),
        ("sink_mode", "one batch tells the shapes of all", "False", True),
    ),
    *_rows(
        WORKS, "Model.fit",
        ("sink_size", "takes effect only with dataset_sink_mode=True", "1", -1),
    ),
    *_rows(
        MOOT, "Model.fit",
        ("dataset_sink_mode", _SINK, "True", False),
        ("valid_dataset_sink_mode", _SINK, "True", False),
    ),
    *_rows(MOOT, "Model.eval", ("dataset_sink_mode", _SINK, "True", False)),
    *_rows(
        REFUSED, "Model.predict",
        ("backend", "set_context(device_target=) chooses the device", "'lite'"),
        ("config", "set_context holds the options", "{}"),
    ),
    *_rows(
        WORKS, "train.DatasetHelper",
        ("dataset_sink_mode", "batches are fed one by one, with either value", "False", True),
        ("epoch_num", "every iteration over the helper is an epoch", "2", 1),
    ),
    *_rows(MOOT, "train.DatasetHelper", ("sink_size", _SINK, "2", -1)),
    *_rows(
        WORKS, "connect_network_with_dataset",
        ("dataset_helper", "a network needs no connection to its data", "None"),
    ),
    *_rows(
        WORKS, "train.SummaryRecord",
        ("num_process", "one process writes the file, whatever the number", "4", 32),
    ),
    *_rows(MOOT, "train.SummaryRecord", ("network", _NO_GRAPH, "net")),
    *_rows(MOOT, "train.SummaryRecord.record", ("train_network", _NO_GRAPH, "net")),
    *_rows(
        WORKS, "train.SummaryCollector",
        ("num_process", "one process writes the file, whatever the number", "4", 32),
        (
            "collect_specified_data",
            "chooses among metrics, input data and histograms",
            "{'collect_metric': True}",
        ),
    ),
    *_rows(
        MOOT, "train.SummaryCollector",
        ("collect_tensor_freq", "a network collects no tensors for summaries", "2"),
    ),
    *_rows(MOOT, "communication.init", ("backend_name", _ONE, "'nccl'")),
    *_rows(MOOT, "communication.create_group", ("options", _ONE, "object()")),
)  # fmt: skip

_PROFILES = (
    *_rows(
        MOOT, "profile",
        ("data_process", _WATCHED, "True", False),
        ("parallel_strategy", _ASCEND_COUNTERS, "True", False),
        ("hbm_ddr", _ASCEND_COUNTERS, "True", False),
        ("pcie", _ASCEND_COUNTERS, "True", False),
        ("sync_enable", "devices with a queue keep the times of their kernels", "False", True),
    ),
    *_rows(
        MOOT, "profiler._ExperimentalConfig",
        ("l2_cache", _ASCEND_COUNTERS, "True", False),
        ("data_simplification", "a profile keeps no raw files", "False", True),
        ("export_type", "results are text and a trace in JSON", "['db']"),
        ("sys_io", _ASCEND_COUNTERS, "True", False),
        ("sys_interconnection", _ASCEND_COUNTERS, "True", False),
        ("host_sys", _WATCHED, "['cpu']"),
    ),
    *_rows(
        MOOT, "Profiler.analyse",
        ("pretty", "results are text already", "True", False),
        ("step_list", "use a schedule to choose steps", "[1]"),
        ("mode", "the files are there when the call returns", "'async'", "sync"),
    ),
    *_rows(
        MOOT, "Profiler.op_analyse",
        ("device_id", "rows of all devices are returned", "0"),
    ),
    *_rows(
        MOOT, "profiler.tensorboard_trace_handler",
        ("analyse_flag", "the files are complete at once", "False", True),
        ("async_mode", "the files are there when the call returns", "True", False),
    ),
)  # fmt: skip

_TABLE = (*_CONTEXT, *_COMPILE, *_OPS, *_SCIPY, *_LAYERS, *_DATASETS, *_TRAINING, *_PROFILES)
OPTIONS: dict[tuple[str, str], Option] = {(o.owner, o.name): o for o in _TABLE}


def options_of(owner: str) -> tuple[Option, ...]:
    """Return all rows of one callable, in the order of the table."""
    return tuple(o for o in _TABLE if o.owner == owner)


def defaults_of(owner: str, status: str) -> dict[str, object]:
    """Return the defaults, by name, of one callable's options that have the given status."""
    return {o.name: o.default for o in options_of(owner) if o.status == status}
