"""The cost model of benchmarks/scaling_model.py, by values that can be computed by hand."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import scaling_model as model
from scaling_model import Layer, Machine, Phase, Workload

# a phase of 1 s, 0.25 s for each further peer, 1 byte and 1 sum in a second, one flop in a second
SLOW = Machine("slow", phase=1.0, message=0.25, byte=1.0, summed=1.0, flops=1.0)


@pytest.mark.parametrize(
    ("make", "elements"),
    [
        (lambda: model.gpt2(1), 124_439_808),  # Radford et al.'s small model
        (lambda: model.resnet(1), 25_557_032),
        (lambda: model.resnet(1, (3, 4, 23, 3)), 44_549_160),
        (lambda: model.vgg16(1), 138_357_544),
    ],
    ids=["GPT-2", "ResNet-50", "ResNet-101", "VGG-16"],
)
def test_networks_have_their_published_numbers_of_parameters(make, elements):
    assert make().elements == elements


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        # a comparison and a gather: two phases, and the bytes for each peer
        (model.all_gather(SLOW, 2, 100), 2 * 1 + 16 + 100),
        (model.all_gather(SLOW, 4, 100), 2 * 1.5 + 3 * (16 + 100)),
        # all ranks gather a small operand and add it
        (model.all_reduce(SLOW, 4, 100), 2 * 1.5 + 3 * (16 + 100) + 3 * 100),
        # a large one is exchanged by shards, added, and gathered
        (model.all_reduce(SLOW, 4, 40_000), 3 * 1.5 + 3 * (16 + 20_000) + 30_000),
        (model.reduce_scatter(SLOW, 4, 40_000), 2 * 1.5 + 3 * (16 + 10_000) + 30_000),
    ],
    ids=["gather 2", "gather 4", "small all-reduce", "all-reduce", "reduce-scatter"],
)
def test_collectives_cost_latency_bytes_and_sums(found, seconds):
    assert model.alone(found) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("buckets", "end"),
    [
        ([], 0),
        ([(5, [Phase(1, 10)])], 16),
        ([(0, [Phase(1, 10)]), (0, [Phase(1, 10)])], 21),  # latencies overlap, transfers do not
        ([(0, [Phase(1, 10)]), (50, [Phase(1, 10)])], 61),  # not before its operands
        (
            [(0, [Phase(1, 10)])] * 3,
            31,
        ),  # the third starts at 11, when a lane is free; the link at 21
        ([(0, [Phase(1, 10), Phase(1, 10)]), (0, [Phase(1, 10)])], 31),
        ([(0, [Phase(0, 1, 7)])], 8),  # the sum follows the transfer
    ],
)
def test_buckets_share_the_link(buckets, end):
    assert model.overlapped(buckets) == pytest.approx(end)


def test_a_link_without_cost_gives_full_efficiency():
    free = Machine("free", 0.0, 0.0, 0.0, 0.0, flops=1e12)
    for workload in (model.gpt2(1), model.resnet(1)):
        for ranks in (1, 8, 1024):
            assert model.data_parallel(workload, free, ranks).efficiency == pytest.approx(1.0)
            assert model.zero(workload, free, ranks).efficiency == pytest.approx(1.0)
    assert model.tensor_parallel(model.gpt2(1), free, 8, 4).efficiency == pytest.approx(1.0)


def test_communication_that_the_backward_pass_hides_is_not_exposed():
    machine = Machine("fast link", 1e-6, 0.0, 1e-12, 0.0, flops=1e9)
    workload = Workload("two layers", (Layer(10, 1e6), Layer(10, 1e6)))
    step = model.data_parallel(workload, machine, 2)
    # what remains is the bucket of the first layer, which is ready when the backward pass ends
    assert step.exposed == pytest.approx(2e-6, rel=0.01)


def test_tensor_parallelism_is_refused_where_it_is_not_modelled():
    with pytest.raises(ValueError, match="modelled for transformers"):
        model.tensor_parallel(model.resnet(1), SLOW, 8, 4)
