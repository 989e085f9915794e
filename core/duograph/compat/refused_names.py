"""Names of MindSpore that cannot work in duograph: importing one works, using it raises an error.

`served_paths` looks them up after all other names, so that a name that works takes precedence. The
table lists what has no meaning without an Ascend chip, a cluster or MindSpore's own tools, and
training on several processes as far as it is not built yet. Of duograph, this module may import
only `errors`.
"""

from __future__ import annotations

import functools

from ..errors import UnsupportedOpError

__all__ = ["REFUSED", "is_refused", "refused"]

_ASCEND = "is a kernel of Ascend chips only"
_REGISTER = "registers a kernel of another device's own tools; write a backend plugin instead"
_SEVERAL = "needs more than one process; not built yet"
_SERVER = "needs the processes of a parameter server; not built yet"
_STRATEGY = "reads the files of training on several processes; not built yet"
_LIMITS = "limits the cores of an Ascend chip"
_ALLOCATOR = "replaces the allocator of an Ascend chip"
_QUEUE = "reads MindSpore's data queues; iterate over the dataset instead"
_CLUSTER = "repairs a job on a cluster of Ascend chips"
_PROFILER = "switches MindSpore's profiler from outside; use profiler.profile in the program"
_TREE = "rewrites MindSpore's own syntax trees; change the source, or a Cell's attributes, instead"
_REPLAY = "keeps a replay buffer or an environment on the device; keep it in Python instead"
_BOOST = "tunes a network for clusters of Ascend chips"
_INTERNAL = "is a part of MindSpore's compiler"
_THOR = "is a part of MindSpore's second-order training, whose kernels are those of Ascend and GPU"
_SAVED = (
    "changes what is kept for a gradient; gradient rules choose that here, and `recompute` of a "
    "Cell keeps less"
)
_STORE = "needs a server that several processes reach; not built yet"
_DISPATCH = (
    "intercepts ops, which run as prepared calls here; use a Cell's hooks or profiler.profile"
)
_ADASUM = "adds up the updates of 16 processes or more"

# namespace -> reason -> names
REFUSED: dict[str, dict[str, str]] = {
    "": {
        _SEVERAL: "parameter_broadcast sync_pipeline_shared_parameters",
        _SAVED: "saved_tensors_hooks register_saved_tensors_hooks",
        _STRATEGY: "build_searched_strategy merge_pipeline_strategys "
        "rank_list_for_transform restore_group_info_list transform_checkpoint_by_rank "
        "transform_checkpoints unified_safetensors get_ckpt_path_with_strategy",
        _SERVER: "set_ps_context",
        _CLUSTER: "TrainFaultTolerance sdc_detect_start sdc_detect_stop get_sdc_detect_result "
        "mindio_preload set_mindio_server_info",
        _LIMITS: "set_device_limit get_device_limit set_stream_limit get_stream_limit "
        "reset_stream_limit StreamLimitCtx",
        _ALLOCATOR: "MemPool PluggableAllocator use_mem_pool memory_replay",
        _TREE: "Node ScopedValue SymbolTree",
        _INTERNAL: "export_split_mindir",
        _THOR: "ConvertNetUtils ConvertModelUtils",
    },
    "parallel": {
        _SEVERAL: "set_op_strategy_config",
        _STRATEGY: "rank_list_for_convert convert_checkpoint_by_rank convert_checkpoints",
    },
    "parallel.strategy": {_STRATEGY: "enable_save_strategy_online get_strategy_metadata"},
    "train": {
        _CLUSTER: "TrainFaultTolerance",
        _STRATEGY: "build_searched_strategy restore_group_info_list "
        "get_ckpt_path_with_strategy",
        _THOR: "ConvertNetUtils ConvertModelUtils",
    },
    "train.serialization": {
        _STRATEGY: "get_allgather_cell get_parameter_redundancy new_build_searched_strategy "
        "new_load_distributed_checkpoint new_merge_sliced_parameter new_restore_group_info_list",
        _INTERNAL: "split_mindir split_dynamic_mindir vlog_print init_ckpt_file_system FileSystem "
        "_get_merged_param_data",
    },
    "nn": {
        _THOR: "thor DenseThor Conv2dThor EmbeddingThor EmbeddingLookupThor",
        _ADASUM: "AdaSumByGradWrapCell AdaSumByDeltaWeightWrapCell",
        _CLUSTER: "OptTFTWrapper",
        _SEVERAL: "VirtualDatasetCellTriple",
        _QUEUE: "GetNextSingleOp",
    },
    "ops": {
        _ASCEND: "PagedAttention PagedAttentionMask ReshapeAndCache KVCacheScatterUpdate "
        "MoeDistributeCombine MoeDistributeDispatch MoeFinalizeRouting MoeGatingTopKSoftmax "
        "MoeInitRoutingV2 MoeTokenUnpermute moe_distribute_combine moe_distribute_dispatch "
        "moe_init_routing_v2 moe_token_permute moe_token_unpermute nsa_compress "
        "nsa_compress_attention nsa_select_attention FusedInferAttentionScore "
        "fused_infer_attention_score incre_flash_attention prompt_flash_attention "
        "lightning_indexer sparse_flash_attention ring_attention_update all_gather_matmul "
        "matmul_reduce_scatter GroupedMatmul GroupedMatmulV4 grouped_matmul_v4 QuantBatchMatmul "
        "WeightQuantBatchMatmul DynamicQuantExt QuantV2 FusedAddTopKDiv GroupTopk "
        "NPUAllocFloatStatus NPUClearFloatStatus NPUGetFloatStatus speed_fusion_attention "
        "ApplyRotaryPosEmb DSDMatmul MatmulDDS FusedCastAdamWeightDecay format_cast "
        "FlashAttentionScore DynamicRNN DynamicGRUV2",
        _REPLAY: "BufferAppend BufferGetItem BufferSample EnvCreate EnvReset EnvStep MuxReceive "
        "MuxSend BatchAssign PriorityReplayBufferCreate PriorityReplayBufferDestroy "
        "PriorityReplayBufferPush PriorityReplayBufferSample PriorityReplayBufferUpdate "
        "ReservoirReplayBufferCreate ReservoirReplayBufferDestroy ReservoirReplayBufferPush "
        "ReservoirReplayBufferSample DiscountedReturn CudnnGRU TensorsQueueCreate TensorsQueuePut "
        "TensorsQueueGet TensorsQueuePop TensorsQueueClear TensorsQueueClose TensorsQueueSize",
        _REGISTER: "AiCPURegOp AkgAscendRegOp AkgGpuRegOp CpuRegOp TBERegOp CustomRegOp "
        "CustomOpBuilder custom_info_register DataType kernel ms_kernel get_vm_impl_fn "
        "vm_impl_registry",
        _SEVERAL: "AlltoAllV AlltoAllVC AllGatherV ReduceScatterV NeighborExchange "
        "NeighborExchangeV2 CollectiveGather CollectiveScatter BatchISendIRecv "
        "Reshard distribute Morph",
        _SERVER: "Push Pull MapCacheIdx MapUniform make_map_parameter",
        _STORE: "TCPStore",
        _QUEUE: "GetNext ms_hasnext ms_next",
        _INTERNAL: "Merge GeSwitch geswitch switch_layer Reusing merge DumpGradient PyExecute "
        "CopyWithSlice SelectView SliceGetItem DtypeToEnum",
    },
    "ops.communication": {_STORE: "TCPStore"},
    "ops.operations._tensor_array": {
        _REPLAY: "TensorArray TensorArrayWrite TensorArrayRead TensorArrayClose TensorArrayClear "
        "TensorArrayStack TensorArraySize TensorArrayGather",
    },
    "runtime": {
        _LIMITS: "set_device_limit get_device_limit set_stream_limit get_stream_limit "
        "reset_stream_limit StreamLimitCtx",
        _ALLOCATOR: "MemPool PluggableAllocator use_mem_pool memory_replay",
    },
    "profiler": {
        _PROFILER: "DynamicProfilerMonitor EnvProfiler",
    },
    "rewrite": {
        _TREE: "Node NodeType PatternEngine PatternNode Replacement ScopedValue SymbolTree "
        "ValueType",
    },
    "boost": {
        _BOOST: "AdaSum AutoBoost BoostTrainOneStepCell BoostTrainOneStepWithLossScaleCell "
        "DimReduce FreezeOpt GradientFreeze GroupLossScaleManager LessBN OptimizerProcess "
        "ParameterProcess freeze_cell",
    },
    "utils": {
        _CLUSTER: "stress_detect sdc_detect_start sdc_detect_stop get_sdc_detect_result "
        "RSCPluginHandle TFTCommValue comm_exec_order_check runtime_execution_order_check",
        _DISPATCH: "MsDispatchMode",
    },
    "_c_expression.amp": {
        _INTERNAL: "create_amp_strategy PrimCastStrategyInfo push_amp_strategy pop_amp_strategy"
    },
    "common.file_system": {_CLUSTER: "mindio_preload set_mindio_server_info"},
    "device_context.ascend": {_ASCEND: "device_count is_available op_debug op_precision op_tuning"},
    "train.callback": {_CLUSTER: "TrainFaultTolerance"},
}  # fmt: skip


@functools.cache
def _reasons() -> dict[tuple[str, str], str]:
    return {
        (path, name): reason
        for path, rows in REFUSED.items()
        for reason, names in rows.items()
        for name in names.split()
    }


def is_refused(value: object) -> bool:
    """Return whether an object is the placeholder for a MindSpore name that cannot work here."""
    return isinstance(value, _Refused)


class _Refused:
    """Placeholder for a MindSpore name that cannot work in duograph; its use raises an error.

    Calling it or naming it as a base class raises UnsupportedOpError, which says the reason.
    Reading an attribute returns another placeholder, whose name is the full path. Reading one whose
    name begins with two underscores raises AttributeError, unless every object has it.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.__name__ = self.__qualname__ = name
        self._reason = reason
        self.__doc__ = self._text = f"{name} {reason}."

    def __call__(self, *_: object, **__: object) -> object:
        raise UnsupportedOpError(self._text)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # what Python and tools ask any object
            raise AttributeError(name)
        return refused(f"{self.__name__}.{name}", self._reason)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        raise UnsupportedOpError(f"{self._text[:-1]}; it cannot be a base class")

    def __repr__(self) -> str:
        return f"<refused: {self._text}>"


@functools.cache
def refused(name: str, reason: str) -> _Refused:
    """Return the placeholder for a name that cannot work; the same object for equal arguments."""
    return _Refused(name, reason)


def find(path: str, name: str) -> _Refused | None:
    """Return the placeholder for `name` in the namespace `path`, or None if it is not refused."""
    reason = _reasons().get((path, name))
    return None if reason is None else refused(name, reason)
