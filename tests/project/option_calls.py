"""How each callable of the table of options is called; ``{}`` stands for the option.

The calls see the names of `namespace`. A callable without ``{}`` has no meaning as a whole.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

import duograph as ms
import numpy as np
from duograph import dataset, nn, ops
from duograph.option_table import OPTIONS

_PARAMETER = "ms.Parameter(ops.zeros((3, 2)), name='p')"
_ROWS = "dataset.NumpySlicesDataset({'x': [1, 2]}, shuffle=False)"
_BATCHES = (
    "dataset.NumpySlicesDataset((np.ones((2, 2), 'f'), np.ones((2, 1), 'f')), shuffle=False)"
    ".batch(2)"
)
_MODEL = "ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()), metrics={'loss'})"
_OPTIMIZER = "nn.SGD(net.trainable_params())"
_MATRIX = "ms.Tensor([[1.0, 2.0], [3.0, 4.0]])"
_STEP = "nn.TrainOneStepWithLossScaleCell(net, nn.SGD(net.trainable_params()), ms.Tensor(1.0))"

CALLS = {
    "set_context": "ms.set_context({})",
    "set_auto_parallel_context": "ms.set_auto_parallel_context({})",
    "jit": "ms.jit(identity, {})(x)",
    "JitConfig": "ms.JitConfig({})",
    "ms_function": "ms.ms_function(identity, {})(x)",
    "mutable": "ms.mutable((1, 2), {})",
    "lazy_inline": "ms.lazy_inline(identity)",
    "no_inline": "ms.no_inline(identity)",
    "set_memory": "ms.runtime.set_memory(max_size='1GB')",
    "set_cpu_affinity": "ms.runtime.set_cpu_affinity(True)",
    "set_kernel_launch_capture": "ms.runtime.set_kernel_launch_capture(True)",
    "set_kernel_launch_group": "ms.runtime.set_kernel_launch_group()",
    "dispatch_threads_num": "ms.runtime.dispatch_threads_num(2)",
    "constexpr": "ms.constexpr(identity, {})",
    "Tensor": "ms.Tensor([1.0], {})",
    "Tensor.topk": "x.topk(1, {})",
    "Tensor.sort": "x.sort({})",
    "Tensor.argsort": "x.argsort({})",
    "Tensor.copy_": "ms.Tensor([1.0, 2.0]).copy_(x, {})",
    "Tensor.data_sync": "x.data_sync({})",
    "Tensor.to": "x.to(ms.float32, {})",
    "ops.index_add": f"ops.index_add({_PARAMETER}, ms.Tensor([1]), ops.ones((1, 2)), 0, {{}})",
    "ops.topk": "ops.topk(x, 1, {})",
    "nn.PipelineCell": "nn.PipelineCell(net, 2, {})",
    "nn.PipelineGradReducer": "nn.PipelineGradReducer(net.trainable_params(), {})",
    "ops.UntypedStorage.copy_": "x.untyped_storage().copy_(x.untyped_storage(), {})",
    "ops.depend": "ops.depend(x, {})",
    "ops.flash_attention_score": "ops.flash_attention_score(*[ops.ones((1, 2, 4))] * 3, 2, {})",
    "ops.matrix_diag": "ops.matrix_diag(x, {})",
    "ops.matrix_diag_part": f"ops.matrix_diag_part({_MATRIX}, {{}})",
    "ops.matrix_set_diag": f"ops.matrix_set_diag({_MATRIX}, x, {{}})",
    "ops.randperm": "ops.randperm(3, {})",
    "ops.MultitypeFuncGraph": "ops.MultitypeFuncGraph('f', {})",
    "ops.HookBackward": "ops.HookBackward(identity, {})",
    "ops.Custom": "ops.Custom(identity, {})",
    "ops.Primitive.set_device": "ops.Add().set_device('CPU')",
    "ops.Primitive.set_stage": "ops.Add().set_stage(0)",
    "ops.Primitive.place": "ops.Add().place('MS_WORKER', 0)",
    "ops.Primitive.recompute": "ops.Add().recompute()",
    "ops.Primitive.add_prim_attr": "ops.Add().add_prim_attr('colour', 1)",
    "ops.dropout": "ops.dropout(x, {})",
    "ops.Conv2D": "ops.Conv2D(1, 1, {})",
    "ops.Conv3D": "ops.Conv3D(1, 1, {})",
    "ops.Conv2DBackpropInput": "ops.Conv2DBackpropInput(1, 1, {})",
    "ops.Conv2DTranspose": "ops.Conv2DTranspose(1, 1, {})",
    "ops.Conv2DBackpropFilter": "ops.Conv2DBackpropFilter(1, 1, {})",
    "ops.Conv3DTranspose": "ops.Conv3DTranspose(1, 1, 1, {})",
    "ops.DepthwiseConv2dNative": "ops.DepthwiseConv2dNative(1, 1, {})",
    "ops.AllReduce": "ops.AllReduce({})(x)",
    "ops.AllGather": "ops.AllGather({})(x)",
    "ops.ReduceScatter": "ops.ReduceScatter({})(x)",
    "ops.Broadcast": "ops.Broadcast(0, {})((x,))",
    "ops.ScalarSummary": "ops.ScalarSummary()('n', x)",
    "ops.TensorSummary": "ops.TensorSummary()('n', x)",
    "ops.HistogramSummary": "ops.HistogramSummary()('n', x)",
    "ops.ImageSummary": "ops.ImageSummary()('n', x)",
    **{
        f"scipy.linalg.{name}": f"scipy.linalg.{name}({call}, {{}})"
        for name, call in [
            ("inv", _MATRIX),
            ("cholesky", _MATRIX),
            ("cho_factor", _MATRIX),
            ("cho_solve", f"({_MATRIX}, True), x"),
            ("lu_factor", _MATRIX),
            ("lu", _MATRIX),
            ("solve_triangular", f"{_MATRIX}, x"),
            ("eigh", _MATRIX),
        ]
    },
    "scipy.optimize.line_search": "scipy.optimize.line_search(lambda v: (v * v).sum(), x, -x, {})",
    "scipy.optimize.minimize": "scipy.optimize.minimize(ops.sum, x, (), 'BFGS', {})",
    "Parameter": "ms.Parameter(x, {})",
    "nn.Cell.init_parameters_data": "net.init_parameters_data({})",
    "nn.Cell.recompute": "net.recompute({})",
    "nn.Cell.set_data_parallel": "net.set_data_parallel({})",
    "set_algo_parameters": "ms.set_algo_parameters(fully_use_devices=False)",
    "recompute": "ms.recompute(net, ops.ones((1, 2)), {})",
    "nn.Identity": "nn.Identity({})(x)",
    "nn.Dropout": "nn.Dropout(p=0.5, {})",
    "nn.SyncBatchNorm": "nn.SyncBatchNorm(2, {})",
    "mint.nn.SyncBatchNorm": "ms.mint.nn.SyncBatchNorm(2, {})",
    "mint.distributed.init_process_group": (
        "ms.mint.distributed.init_process_group({}), ms.mint.distributed.destroy_process_group()"
    ),
    "mint.distributed.new_group": "ms.mint.distributed.new_group([0], {})",
    "mint.distributed.barrier": "ms.mint.distributed.barrier({})",
    "mint.distributed.broadcast_object_list": "ms.mint.distributed.broadcast_object_list([1], {})",
    "mint.distributed.send_object_list": (
        "np.testing.assert_raises(ValueError, ms.mint.distributed.send_object_list, [1], 0, {})"
    ),
    "mint.distributed.recv_object_list": (
        "np.testing.assert_raises(ValueError, ms.mint.distributed.recv_object_list, [1], 0, {})"
    ),
    "mint.sort": "ms.mint.sort(x, {})",
    "mint.argsort": "ms.mint.argsort(x, {})",
    "nn.DistributedGradReducer": "nn.DistributedGradReducer(**{'parameters': [], **dict({})})",
    "nn.Conv2dBnAct": "nn.Conv2dBnAct(1, 1, 1, {})",
    "nn.DenseBnAct": "nn.DenseBnAct(1, 1, {})",
    "nn.TimeDistributed": "nn.TimeDistributed(net, 1, {})(ops.ones((1, 3, 2)))",
    "nn.TrainOneStepWithLossScaleCell.start_overflow_check": (
        f"{_STEP}.start_overflow_check(compute_input=x, {{}})"
    ),
    "nn.TrainOneStepWithLossScaleCell.get_overflow_status": (
        f"{_STEP}.get_overflow_status(compute_output=x, {{}})"
    ),
    "nn.GraphCell": "nn.GraphCell(None, {})",
    "nn.Adam": "nn.Adam(net.trainable_params(), {})",
    "nn.RMSProp": "nn.RMSProp(net.trainable_params(), {})",
    "nn.FTRL": "nn.FTRL(net.trainable_params(), {})",
    "dataset.Dataset.batch": f"{_ROWS}.batch(1, {{}})",
    "dataset.Dataset.map": f"{_ROWS}.map(identity, {{}})",
    "dataset.GeneratorDataset": "dataset.GeneratorDataset([1, 2], ['x'], {})",
    "dataset.vision.Pad.device": "dataset.vision.Pad(1).device({})",
    "dataset.config.set_enable_shared_mem": "dataset.config.set_enable_shared_mem(True)",
    "dataset.config.set_auto_offload": "dataset.config.set_auto_offload(True)",
    "dataset.config.set_enable_autotune": "dataset.config.set_enable_autotune(True)",
    "dataset.config.set_autotune_interval": "dataset.config.set_autotune_interval(0)",
    "dataset.config.set_dynamic_shape": "dataset.config.set_dynamic_shape(True)",
    "dataset.config.set_fast_recovery": "dataset.config.set_fast_recovery(True)",
    "dataset.config.set_monitor_sampling_interval": (
        "dataset.config.set_monitor_sampling_interval(1000)"
    ),
    "dataset.config.set_numa_enable": "dataset.config.set_numa_enable(True)",
    "dataset.config.set_sending_batches": "dataset.config.set_sending_batches(1)",
    "dataset.config.set_iterator_mode": "dataset.config.set_iterator_mode(False, True)",
    "save_checkpoint": "ms.save_checkpoint(net, path, {})",
    "load_checkpoint": "ms.load_checkpoint(saved(), {})",
    "load_param_into_net": "ms.load_param_into_net(net, net.parameters_dict(), {})",
    "CheckpointConfig": "ms.CheckpointConfig({})",
    "ckpt_to_safetensors": "ms.ckpt_to_safetensors(saved(), {})",
    "load_distributed_checkpoint": (
        "ms.load_distributed_checkpoint(net, {}, format='safetensors', "
        "unified_safetensors_dir=folder_of(saved('safetensors')))"
    ),
    "safetensors_to_ckpt": "ms.safetensors_to_ckpt(saved('safetensors'), {})",
    "export": "ms.export(net, ops.ones((1, 2)), file_name=path, file_format='MINDIR', {})",
    "load": "ms.load(path, {})",
    "Model": f"ms.Model(net, nn.MSELoss(), {_OPTIMIZER}, {{}})",
    "build_train_network": f"ms.build_train_network(net, {_OPTIMIZER}, nn.MSELoss(), {{}})",
    "Model.train": f"{_MODEL}.train(1, {_BATCHES}, {{}})",
    "Model.fit": f"{_MODEL}.fit(1, {_BATCHES}, {_BATCHES}, {{}})",
    "Model.build": f"{_MODEL}.build({_BATCHES}, {{}})",
    "Model.eval": f"{_MODEL}.eval({_BATCHES}, {{}})",
    "Model.predict": "ms.Model(net).predict(ops.ones((1, 2)), {})",
    "train.DatasetHelper": f"list(ms.train.DatasetHelper({_ROWS}, {{}}))",
    "train.SummaryRecord": "ms.train.SummaryRecord(path, {})",
    "train.SummaryRecord.record": "ms.train.SummaryRecord(path).record(1, {})",
    "train.SummaryCollector": "ms.train.SummaryCollector(path, {})",
    "connect_network_with_dataset": "ms.connect_network_with_dataset(net, {})",
    "data_sink": f"ms.data_sink(identity, {_ROWS}, {{}})",
    "profile": "ms.profiler.profile(start_profile=False, {})",
    "profiler._ExperimentalConfig": "ms.profiler._ExperimentalConfig({})",
    "Profiler.analyse": "ms.Profiler(output_path=path, start_profile=False).analyse({})",
    "Profiler.op_analyse": "ms.Profiler(start_profile=False).op_analyse('add', {})",
    "profiler.tensorboard_trace_handler": "ms.profiler.tensorboard_trace_handler({})",
    "communication.init": "ms.communication.init({})",
    "communication.create_group": "ms.communication.create_group('g', [0], {})",
}
for _name in (
    "Adam", "AdamNoUpdateParam", "AdamWeightDecay", "ApplyAdagradDA", "ApplyAdamWithAmsgrad",
    "ApplyAdamWithAmsgradV2", "ApplyCenteredRMSProp", "ApplyFtrl", "ApplyKerasMomentum",
    "ApplyProximalAdagrad", "ApplyRMSProp", "FusedSparseAdam",
    "SparseApplyProximalAdagrad",
):  # fmt: skip
    CALLS[f"ops.{_name}"] = f"ops.{_name}({{}})"
CALLS["ops.SparseApplyRMSProp"] = "ops.SparseApplyRMSProp(0.1, 0.1, 1e-6, {})"
for _mode in ("update", "add", "sub", "mul", "div", "max", "min"):
    for _kind, _at in (("scatter", "ms.Tensor([1])"), ("scatter_nd", "ms.Tensor([[1]])")):
        CALLS[f"ops.{_kind}_{_mode}"] = (
            f"ops.{_kind}_{_mode}({_PARAMETER}, {_at}, ops.ones((1, 2)), {{}})"
        )


def namespace(tmp_path: pathlib.Path) -> dict[str, Any]:
    """Return the names that the calls use."""
    net = nn.Dense(2, 1)

    def saved(suffix: str = "ckpt") -> str:
        path = str(tmp_path / f"saved.{suffix}")
        ms.save_checkpoint(net, path, format=suffix)
        return path

    return {
        "ms": ms, "np": np, "nn": nn, "ops": ops, "dataset": dataset, "net": net, "saved": saved,
        "folder_of": os.path.dirname,
        "x": ms.Tensor([1.0, 2.0]), "path": str(tmp_path / "file"), "identity": lambda x: x,
        "scipy": ms.scipy,
    }  # fmt: skip


def with_option(call: str, given: str) -> str:
    """Return a call of the table above with ``{}`` replaced."""
    return call.replace("{}", given)


def call_text(owner: str, name: str, value: str | None = None) -> str:
    """Return the source of a call that gives an option; by default with the value of the table."""
    value = OPTIONS[owner, name].value if value is None else value
    given = value if name == "args" else f"{name}={value}" if name else ""
    return with_option(CALLS[owner], given)
