"""set_context and get_context: values, defaults, refusals."""

from __future__ import annotations

import duograph as ms
import pytest
from duograph import context, option_checks
from duograph.errors import OptionWarning


@pytest.fixture(autouse=True)
def _fresh(restored):
    option_checks.forget_warnings()


def test_mode_constants() -> None:
    """A04: Constants `ms.GRAPH_MODE` (0) and `ms.PYNATIVE_MODE` (1)"""
    assert (ms.GRAPH_MODE, ms.PYNATIVE_MODE) == (0, 1)
    assert ms.get_context("mode") == ms.PYNATIVE_MODE


def test_context_module_has_the_same_functions() -> None:
    """A18: `from mindspore import context` module spelling works beside top level"""
    from duograph import context as c

    c.set_context(mode=c.PYNATIVE_MODE)
    assert c.get_context("mode") == 1


def test_many_keywords_at_once() -> None:
    """A14: `set_context` takes many keywords at once, including ones a given device ignores"""
    with pytest.warns(OptionWarning):
        ms.set_context(
        mode=1, device_id=0, save_graphs=True, save_graphs_path="x", enable_graph_kernel=False,
        reserve_class_name_in_scope=False, max_call_depth=10, graph_kernel_flags="",
        variable_memory_max_size="1GB",
    )  # fmt: skip
    assert ms.get_context("save_graphs_path") == "x"


@pytest.mark.parametrize(
    ("kwargs", "pattern"),
    [
        ({"colour": 1}, "unknown option 'colour'.*mode"),
        ({"mode": 7}, r"mode=7; wanted GRAPH_MODE \(0\) or PYNATIVE_MODE \(1\)"),
        ({"mode": "fast"}, "wanted GRAPH_MODE"),
        ({"mode": True}, "wanted GRAPH_MODE"),
        ({"device_id": -1}, "device_id=-1; wanted an int of 0 or more"),
        ({"device_target": 3}, "wanted the name of a backend"),
        ({"deterministic": "maybe"}, "wanted one of 'ON', 'OFF'"),
        ({"device_target": "Ascend"}, "got device_target='Ascend'.*wanted one of .*CPU"),
    ],
)
def test_set_context_refuses_bad_values_and_changes_nothing(
    kwargs: dict[str, object], pattern: str
) -> None:
    """A15, A16, A20, A46: a refusal names what was got and what is allowed, and changes nothing."""
    before = dict(vars(context.settings))
    with pytest.raises(ValueError, match=pattern):
        ms.set_context(**{"debug": True, **kwargs} if "colour" not in kwargs else kwargs)
    assert vars(context.settings) == before


def test_get_context_refuses_unknown_options() -> None:
    with pytest.raises(ValueError, match="unknown option 'colour'"):
        ms.get_context("colour")


def test_device_target_is_answered_before_it_is_set() -> None:
    """A12: With no device named, the best installed device is chosen from the environment"""
    context.settings.device_target = None
    assert ms.get_context("device_target") == "CPU"


def test_parallel_context() -> None:
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    with pytest.warns(OptionWarning, match="enable_alltoall has no meaning"):
        ms.set_auto_parallel_context(enable_alltoall=True)
    assert ms.get_auto_parallel_context("gradients_mean") is True
    ms.reset_auto_parallel_context()
    assert ms.get_auto_parallel_context("gradients_mean") is False
    with pytest.raises(ValueError, match="unknown option"):
        ms.set_auto_parallel_context(colour=1)
