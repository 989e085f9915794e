"""The table of options: which work, which have no meaning here, which are refused.

`option_checks` warns and raises as the table says, `docs/options.md` is printed from it, and the
tests call every row. Every argument that the table does not list has an effect; a test reads the
sources to check that the function's body uses it. It imports only modules that define rows, so any
module may import it.
"""

from __future__ import annotations

from collections.abc import Iterator

from .option_rows import MOOT, ONE, REFUSED, SINK, WORKS, Option, rows
from .option_training import DATASETS, PROFILES, TRAINING

__all__ = ["MOOT", "OPTIONS", "REFUSED", "WORKS", "Option", "defaults_of", "options_of"]


_RANKS = "says how training steps combine the gradients of several ranks"
_STATE = "says how ranks share the state and the update of an optimiser"
_BY_LAUNCHER = "the launcher of the ranks connects them"
_HOST = "objects are in host memory"
_BY_ENGINE = "the communication engine decides"
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
_COMPILED = "there is one way of compiling"
_FUSION = 'jit_level="O1", the default, fuses ops'
_SUMMARY = "no summary is written from inside a network; use train.SummaryRecord"
_MOVED = "the data is there when the call returns"

_CONTEXT = (
    *rows(
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
    *rows(
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
        ("enable_loop_sink", SINK, "False", True),
        ("enable_task_sink", SINK, "False", True),
        ("disable_format_transform", "layouts never change results", "True", False),
        ("support_binary", "compiling needs the source of a function", "True", False),
        ("exec_order", "ops run in the order of the program", "'dfs'", "bfs"),
        ("debug_level", "errors always name the source line; use debug=True", "1", 0),
    ),
    *rows(
        REFUSED, "set_context",
        ("precompile_only", "use Cell.compile, which compiles without running", "True", False),
    ),
    *rows(
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
        ("pipeline_stages", "into how many stages ranks and compiled programs are divided", "2", 1),
        ("pipeline_scheduler", "in which order stages run forward and backward passes", "'gpipe'",
         "1f1b"),
        ("pipeline_config", "pipeline_scheduler is in it too", "{'pipeline_scheduler': 'gpipe'}"),
    ),
    *rows(
        MOOT, "set_auto_parallel_context",
        ("gradient_fp32_sync", ONE, "False", True),
        ("search_mode", ONE, "'sharding_propagation'", "recursive_programming"),
        ("auto_parallel_search_mode", ONE, "'sharding_propagation'", "recursive_programming"),
        ("strategy_ckpt_load_file", ONE, "'f'", ""),
        ("strategy_ckpt_save_file", ONE, "'f'", ""),
        ("enable_alltoall", ONE, "True", False),
        ("all_reduce_fusion_config", ONE, "[1]"),
        ("pipeline_result_broadcast", ONE, "True", False),
        ("grad_accumulation_step", ONE, "2", 1),
        ("comm_fusion", ONE, "{}"),
        ("mirror_mean", ONE, "True", False),
        ("communi_parallel_mode", ONE, "'no_group_parallel'", "all_group_parallel"),
        ("optimizer_weight_shard_size", ONE, "2", -1),
        ("optimizer_weight_shard_aggregated_save", ONE, "True", False),
        ("sharding_propagation", ONE, "True", False),
        ("strategy_ckpt_config", ONE, "{}"),
        ("group_ckpt_save_file", ONE, "'f'", ""),
    ),
)  # fmt: skip

_COMPILE = (
    *rows(
        WORKS, "jit",
        ("function", "what to compile", "lambda x: x"),
        ("fn", "older name of function", "lambda x: x"),
        ("jit_level", "O0 runs kernels of eager mode, O1 fuses, O2 moves loops too", "'O0'", ""),
        ("fullgraph", "refuse what only Python can run", "True", False),
        ("dynamic", "when sizes become symbolic, and numbers inputs", "1", None),
        ("backend", "the device that the function runs on", "'CPU'", ""),
        ("jit_config", "a JitConfig or a dictionary of its options", "{'jit_level': 'O0'}"),
        ("jit_syntax_level", "STRICT refuses what only Python can run", "'STRICT'", ""),
        ("input_signature", "shapes and dtypes that the arguments must have",
         "(ms.Tensor(shape=[None], dtype=ms.float32),)"),
    ),
    *rows(
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
    *rows(
        WORKS, "JitConfig",
        ("jit_level", "level of the function", "'O0'", ""),
        ("jit_syntax_level", "STRICT refuses what only Python can run", "'STRICT'", ""),
    ),
    *rows(
        MOOT, "JitConfig",
        ("exc_mode", _COMPILED, "'sink'", "auto"),
        ("exec_mode", _COMPILED, "'sink'", "auto"),
        ("debug_level", "errors always name the source line", "'DEBUG'", "RELEASE"),
        ("infer_boost", _COMPILED, "'on'", "off"),
    ),
    *rows(
        MOOT, "ms_function",
        ("hash_args", "captured values are compared by what they are", "[1]"),
    ),
    *rows(MOOT, "mutable", ("dynamic_len", "each length is compiled on its own", "True", False)),
    *rows(MOOT, "lazy_inline", ("", "every Cell is compiled into the graph of its caller")),
    *rows(MOOT, "no_inline", ("", "every function is compiled into the graph of its caller")),
    *rows(MOOT, "set_memory", ("", "every device has an allocator of its own")),
    *rows(MOOT, "set_cpu_affinity", ("", "threads are those of the backend")),
    *rows(MOOT, "set_kernel_launch_capture", ("", _COMPILED)),
    *rows(MOOT, "set_kernel_launch_group", ("", _COMPILED)),
    *rows(MOOT, "dispatch_threads_num", ("", _COMPILED)),
    *rows(
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
        for row in rows(WORKS, f"ops.{kind}_{mode}", ("use_locking", _LOCK, "True", False))
    ],
    *rows(
        WORKS, "ops.index_add",
        ("use_lock", _LOCK, "False", True),
        ("check_index_bound", "indices are always checked", "False", True),
    ),
    *rows(WORKS, "ops.topk", ("sorted", "the elements always come in order", "False", True)),
    *rows(WORKS, "Tensor.topk", ("sorted", "the elements always come in order", "False", True)),
    *rows(WORKS, "Tensor.sort", ("stable", "the sort is always stable", "False", True)),
    *rows(WORKS, "Tensor.argsort", ("stable", "the sort is always stable", "False", True)),
    *rows(WORKS, "Tensor.copy_", ("non_blocking", _MOVED, "True", False)),
    *rows(WORKS, "Tensor.data_sync", ("blocking", _MOVED, "False", True)),
    *rows(WORKS, "Tensor.to", ("copy", "the result is always another Tensor", "True", False)),
    *[
        row
        for name in ("Conv2D", "Conv2DBackpropInput", "Conv2DTranspose", "Conv2DBackpropFilter",
                     "Conv3D", "Conv3DTranspose")
        for row in rows(MOOT, f"ops.{name}", ("mode", "it names no other convolution", "0", 1))
    ],
    *rows(
        MOOT, "ops.DepthwiseConv2dNative",
        ("mode", "it names no other convolution", "1", 3),
        ("group", "every channel is a group of its own", "2", 1),
    ),
    *[
        row
        for name in ("AllReduce", "AllGather", "ReduceScatter", "Broadcast")
        for row in rows(WORKS, f"ops.{name}", ("group", "every group is this one process", "'g'",
                                               "hccl_world_group"))
    ],
    *rows(WORKS, "ops.depend", ("expr", "the caller has evaluated it before", "x + 1")),
    *rows(
        WORKS, "ops.flash_attention_score",
        ("inner_precise", "sums have the precision of float32 at least", "1", 0),
    ),
    *rows(
        WORKS, "ops.matrix_diag",
        ("align", "one diagonal has no shorter one to align with", "'LEFT_LEFT'", "RIGHT_LEFT"),
    ),
    *rows(
        WORKS, "ops.matrix_set_diag",
        ("align", "one diagonal has no shorter one to align with", "'LEFT_LEFT'", "RIGHT_LEFT"),
    ),
    *rows(
        WORKS, "ops.matrix_diag_part",
        ("align", "one diagonal has no shorter one to align with", "'LEFT_LEFT'", "RIGHT_LEFT"),
        ("padding_value", "one diagonal needs no padding", "1", 0),
    ),
    *rows(
        MOOT, "Tensor",
        ("const_arg", "every Tensor argument of a compiled function is an input", "True", False),
    ),
    *rows(
        MOOT, "ops.randperm",
        ("offset", "the random state moves on by itself at every call", "1", 0),
    ),
    *rows(
        MOOT, "ops.MultitypeFuncGraph",
        ("read_value", "Parameters are passed as they are", "True", False),
    ),
    *rows(MOOT, "ops.HookBackward", ("cell_id", "a hook needs no name", "'cell'", "")),
    *rows(MOOT, "ops.Custom", ("reg_info", "a Python function needs no description", "{}")),
    *rows(
        MOOT, "ops.Primitive.add_prim_attr",
        ("", "an op has no attributes beside the arguments of its class"),
    ),
    *rows(MOOT, "ops.Primitive.set_device", ("", "an op runs on the device of its operands")),
    *rows(MOOT, "ops.Primitive.set_stage", ("", "a pipeline has one process")),
    *rows(MOOT, "ops.Primitive.place", ("", "every op runs in the process that calls it")),
    *rows(
        MOOT, "ops.Primitive.recompute",
        ("", "a single op is not computed again; Cell.recompute and ms.recompute work"),
    ),
    *rows(
        REFUSED, "ops.dropout",
        ("inplace", "assign the result: x = ops.dropout(x)", "True", False),
    ),
    *[
        row
        for name in ("ScalarSummary", "TensorSummary", "HistogramSummary", "ImageSummary")
        for row in rows(MOOT, f"ops.{name}", ("", _SUMMARY))
    ],
)  # fmt: skip

_BUFFERS = "the buffer of a Tensor never changes, so an operand cannot be overwritten"
_FINITE = "decompositions on the host refuse what is not finite, other functions return it"


def _scipy(name: str, *more: tuple[object, ...], operand: str = "a") -> Iterator[Option]:
    """Yield the rows of the options of `scipy.linalg.NAME` that exist only because SciPy has them.

    Args:
        name: name of the function.
        more: further tuples for `rows`.
        operand: name of the operand that SciPy may overwrite.
    """
    overwrite = (f"overwrite_{operand}", _BUFFERS, "True", False)
    finite = ("check_finite", _FINITE, "False", True)
    yield from rows(MOOT, f"scipy.linalg.{name}", overwrite, finite, *more)


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
    *rows(
        MOOT, "scipy.optimize.line_search",
        ("old_old_fval", "the first step is 1", "ms.Tensor(1.0)"),
    ),
    *rows(
        REFUSED, "scipy.optimize.minimize",
        ("hess", "BFGS approximates the Hessian", "identity"),
        ("hessp", "BFGS approximates the Hessian", "identity"),
        ("bounds", "substitute variables, such as x = ops.sigmoid(y)", "[(0, 1)]"),
        ("constraints", "add a penalty to the function", "identity", ()),
        ("callback", "print in the function", "identity"),
    ),
)  # fmt: skip

_LAYERS = (
    *rows(
        MOOT, "Parameter",
        ("layerwise_parallel", ONE, "True", False),
        ("storage_format", "a backend chooses the layout of its buffers", "'NC1HWC0'", ""),
    ),
    *rows(
        WORKS, "Parameter",
        ("parallel_optimizer", "whether ranks may share its update", "False", True),
    ),
    *rows(MOOT, "set_algo_parameters", ("", "no parallel strategy is searched for")),
    *rows(MOOT, "nn.Cell.set_data_parallel", ("", ONE)),
    *rows(MOOT, "nn.Cell.init_parameters_data", ("auto_parallel_mode", ONE, "True", False)),
    *rows(
        MOOT, "nn.Cell.recompute",
        ("mp_comm_recompute", ONE, "False", True),
        ("parallel_optimizer_comm_recompute", ONE, "True", False),
        ("recompute_slice_activation", ONE, "True", False),
    ),
    *rows(
        REFUSED, "nn.Cell.recompute",
        ("output_recompute", "recompute the Cell that holds this one", "True", False),
    ),
    *rows(
        WORKS, "recompute",
        ("use_reentrant", "the block is run again, with either value", "False", True),
    ),
    *rows(
        REFUSED, "recompute",
        ("output_recompute", "recompute the Cell that holds this one", "True", False),
        ("context_fn", "enter the contexts in the construct of the Cell", "print"),
    ),
    *rows(
        WORKS, "nn.Identity",
        ("args", "any are taken, so that Identity can stand for another layer", "1"),
        ("kwargs", "any are taken, so that Identity can stand for another layer", "1"),
    ),
    *rows(MOOT, "nn.Dropout", ("dtype", "the result has the dtype of the input", "ms.float16",
                                "float32")),
    *rows(WORKS, "nn.Dropout", ("keep_prob", "takes effect only without p", "0.9", 0.5)),
    *rows(
        WORKS, "nn.SyncBatchNorm",
        ("process_groups", "lists the ranks that share their statistics", "[[0]]"),
    ),
    *rows(MOOT, "mint.nn.SyncBatchNorm", ("process_group", ONE, "'hccl_world_group'")),
    *rows(
        MOOT, "mint.distributed.init_process_group",
        ("init_method", _BY_LAUNCHER, "'tcp://127.0.0.1:1'"), ("store", _BY_LAUNCHER),
        ("group_name", _BY_LAUNCHER, "'world'", ""), ("pg_options", _BY_ENGINE),
        ("device_id", _BY_ENGINE, "0"),
    ),
    *rows(
        MOOT, "mint.distributed.new_group",
        ("timeout", "the setting communication_timeout holds for all groups"),
        ("pg_options", _BY_ENGINE),
        ("use_local_synchronization", "only the members wait for each other", "True", False),
    ),
    *rows(MOOT, "mint.distributed.barrier", ("device_ids", _BY_ENGINE, "[0]")),
    *rows(MOOT, "mint.distributed.broadcast_object_list", ("device", _HOST, "'CPU'")),
    *rows(MOOT, "mint.distributed.send_object_list", ("device", _HOST, "'CPU'")),
    *rows(MOOT, "mint.distributed.recv_object_list", ("device", _HOST, "'CPU'")),
    *rows(WORKS, "mint.sort", ("stable", "the sort is always stable", "True", False)),
    *rows(WORKS, "mint.argsort", ("stable", "the sort is always stable", "True", False)),
    *rows(
        WORKS, "nn.DistributedGradReducer",
        ("parameters", "only their number matters: gradients are bucketed by size", "[]"),
        ("mean", _RANKS, "True"),
        ("degree", "divides the sum, in place of the number of ranks", "4"),
        ("fusion_type", "buckets are formed by size", "2", 1),
        ("group", "names the ranks that combine their gradients", "'nccl_world_group'", ""),
    ),
    *rows(MOOT, "nn.Conv2dBnAct", ("after_fake", "layers are never quantised", "False", True)),
    *rows(MOOT, "nn.DenseBnAct", ("after_fake", "layers are never quantised", "False", True)),
    *rows(
        WORKS, "nn.TimeDistributed",
        ("reshape_with_axis", "the layer is called once for each slice, with the same result", "1"),
    ),
    *rows(
        WORKS, "nn.TrainOneStepWithLossScaleCell.start_overflow_check",
        ("pre_cond", "the caller has evaluated it before", "None"),
    ),
    *rows(
        WORKS, "nn.TrainOneStepWithLossScaleCell.get_overflow_status",
        ("status", "the caller has evaluated it before", "None"),
    ),
    *rows(REFUSED, "nn.GraphCell", ("obf_random_seed", "graphs are not obfuscated", "3")),
    *rows(
        WORKS, "nn.Adam",
        ("use_locking", _LOCK, "True", False),
        ("use_lazy", "gradients are dense, so every row is updated", "True", False),
    ),
    *rows(
        MOOT, "nn.PipelineCell",
        ("segment_config", "a stage has one segment of the network", "{'net': 0}"),
    ),
    *rows(WORKS, "ops.UntypedStorage.copy_", ("non_blocking", _HOST, "True", False)),
    *rows(
        MOOT, "nn.PipelineGradReducer",
        ("opt_shard", "gradients are reduced by the compiled step", "True"),
    ),
    *rows(MOOT, "nn.Adam", ("use_offload", "updates run on the device", "True", False)),
    *rows(WORKS, "nn.RMSProp", ("use_locking", _LOCK, "True", False)),
    *[
        row
        for name in _LOCKED_PRIMITIVES
        for row in rows(WORKS, f"ops.{name}", ("use_locking", _LOCK, "True", False))
    ],
    *rows(WORKS, "nn.FTRL", ("use_locking", _LOCK, "True", False)),
)  # fmt: skip


_TABLE = (*_CONTEXT, *_COMPILE, *_OPS, *_SCIPY, *_LAYERS, *DATASETS, *TRAINING, *PROFILES)
OPTIONS: dict[tuple[str, str], Option] = {(o.owner, o.name): o for o in _TABLE}


def options_of(owner: str) -> tuple[Option, ...]:
    """Return all rows of one callable, in the order of the table."""
    return tuple(o for o in _TABLE if o.owner == owner)


def defaults_of(owner: str, status: str) -> dict[str, object]:
    """Return the defaults, by name, of one callable's options that have the given status."""
    return {o.name: o.default for o in options_of(owner) if o.status == status}
