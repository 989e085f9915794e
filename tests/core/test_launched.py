"""One of several processes that no engine connects is refused where it would act alone."""

from __future__ import annotations

import duograph as ms
import pytest
from duograph import communication, mint, nn, ops
from duograph.communication import comm_func
from duograph.launched import launched

X = ms.Tensor([1.0, 2.0])
WORLD = communication.HCCL_WORLD_COMM_GROUP

LAUNCHERS = {
    "Open MPI": {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"},
    "MPICH": {"PMI_SIZE": "4", "PMI_RANK": "0"},
    "msrun": {"MS_WORKER_NUM": "8", "MS_ROLE": "MS_WORKER"},
    "torchrun": {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"},
    "srun": {"SLURM_STEP_NUM_TASKS": "16", "SLURM_PROCID": "3", "SLURM_NTASKS": "16"},
    "the rank table": {"RANK_SIZE": "8", "RANK_ID": "0"},
}
ALONE = {
    "nothing": {},
    "one process": {"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"},
    "a job of several tasks, not yet started": {"SLURM_NTASKS": "16"},
    "a size without a rank": {"WORLD_SIZE": "2", "RANK_SIZE": "2", "PMI_SIZE": "2"},
    "no number": {"PMI_SIZE": "two", "PMI_RANK": "0"},
    "empty": {"PMI_SIZE": "", "PMI_RANK": "0"},
}
CALLS = {
    "init": lambda: communication.init(),
    "get_rank": lambda: communication.get_rank(),
    "get_group_size": lambda: communication.get_group_size(),
    "get_local_rank": lambda: communication.get_local_rank(),
    "management": lambda: communication.management.get_group_size(),
    "init_process_group": lambda: mint.distributed.init_process_group(),
    "get_world_size": lambda: mint.distributed.get_world_size(),
    "mint.all_reduce": lambda: mint.distributed.all_reduce(X),
    "mint.barrier": lambda: mint.distributed.barrier(),
    "comm_func.all_reduce": lambda: comm_func.all_reduce(X),
    "comm_func.barrier": lambda: comm_func.barrier(),
    "AllReduce": lambda: ops.AllReduce()(X),
    "AllGather": lambda: ops.AllGather()(X),
    "ReduceScatter": lambda: ops.ReduceScatter()(X),
    "Broadcast": lambda: ops.Broadcast(0)((X,)),
    "create_group": lambda: communication.create_group("g", [0]),
    "get_world_rank": lambda: communication.get_world_rank_from_group_rank(WORLD, 0),
    "get_group_rank": lambda: communication.get_group_rank_from_world_rank(0, WORLD),
    "new_group": lambda: mint.distributed.new_group([0]),
    "SyncBatchNorm": lambda: nn.SyncBatchNorm(2),
    "mint.SyncBatchNorm": lambda: mint.nn.SyncBatchNorm(2),
    "DistributedGradReducer": lambda: nn.DistributedGradReducer([]),
    "data parallel": lambda: data_parallel_step(),
    "compiled": lambda: ms.jit(lambda x: x * communication.get_group_size())(X),
}


def data_parallel_step():
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL)
    net = nn.Dense(2, 1)
    nn.TrainOneStepCell(net, nn.SGD(net.trainable_params()))


@pytest.fixture
def environment(monkeypatch, restored):
    for variables in (*LAUNCHERS.values(), *ALONE.values()):
        for name in variables:
            monkeypatch.delenv(name, raising=False)

    def put(variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    yield put
    monkeypatch.undo()
    communication.destroy_group("g")
    communication.release()
    if mint.distributed.is_initialized():
        mint.distributed.destroy_process_group()
    ms.reset_auto_parallel_context()


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_launcher_is_known(environment, launcher):
    environment(LAUNCHERS[launcher])
    found = launched()
    assert found is not None and launcher in found.launcher
    assert str(found.size) == LAUNCHERS[launcher][found.variable]


@pytest.mark.parametrize("call", CALLS)
def test_it_is_refused_where_it_would_act_alone(environment, call):
    environment(LAUNCHERS["Open MPI"])
    with pytest.raises(NotImplementedError, match=r"one of 2 .*unset OMPI_COMM_WORLD_SIZE"):
        CALLS[call]()


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("what", ALONE)
def test_a_single_process_goes_on(environment, what, call):
    environment(ALONE[what])
    CALLS[call]()


def test_stand_alone_is_no_claim(environment):
    environment(LAUNCHERS["Open MPI"])
    ms.set_auto_parallel_context(parallel_mode="stand_alone")
