"""Calls that backends return: the core's own classes, or plain functions without optional facts."""

import pytest
from duograph.backend.plugin_checks import as_fused, as_linked, as_packing, as_prepared
from duograph.backend.prepared import LinkedProgram, Packing, PreparedCall
from duograph.errors import BackendError


def test_a_plain_function_is_a_prepared_call():
    call = as_prepared(lambda x: x + 1, 1, lambda: 1)
    assert call.run(1) == call(1) == 2
    assert call.overwrites == () and not call.infallible
    assert not call.packings and call.fuse_consumer is None


def test_a_prepared_call_is_kept():
    call = PreparedCall(max, overwrites=((0, 0),), infallible=True)
    assert as_prepared(call, 2, lambda: 1) is call


def test_a_plain_function_is_a_linked_program():
    program = as_linked(lambda handles, donated=(): handles, 1, 1)
    assert program.run([1]) == [1]
    assert program.donations is None and program.bind is None
    assert as_linked(program, 1, 1) is program


def test_a_linked_program_names_its_donations():
    made = LinkedProgram(lambda handles, donated=(): None, donations={0: 1})
    assert as_linked(made, 2, 1) is made


PACKED = PreparedCall(max)
MALFORMED = {
    "no function": lambda: as_prepared(3, 2, lambda: 1),
    "run": lambda: as_prepared(PreparedCall(3), 2, lambda: 1),
    "overwrites nothing": lambda: as_prepared(PreparedCall(max, overwrites=1), 2, lambda: 1),
    "overwrites words": lambda: as_prepared(PreparedCall(max, overwrites=("00",)), 2, lambda: 1),
    "operand": lambda: as_prepared(PreparedCall(max, overwrites=((2, 0),)), 2, lambda: 1),
    "result": lambda: as_prepared(PreparedCall(max, overwrites=((0, 1),)), 2, lambda: 1),
    "negative": lambda: as_prepared(PreparedCall(max, overwrites=((-1, 0),)), 2, lambda: 1),
    "packings": lambda: as_prepared(PreparedCall(max, packings={2: max}), 2, lambda: 1),
    "packing": lambda: as_packing("packed"),
    "packing of a function": lambda: as_packing(Packing(max, 4, PACKED, 0)),
    "size of a packing": lambda: as_packing(Packing(PACKED, -4, PACKED, 0)),
    "consumer": lambda: as_prepared(PreparedCall(max, fuse_consumer=3), 2, lambda: 1),
    "fused": lambda: as_fused(max),
    "program": lambda: as_linked(None, 1, 1),
    "program's run": lambda: as_linked(LinkedProgram(None), 1, 1),
    "bind": lambda: as_linked(LinkedProgram(max, bind=3), 1, 1),
    "donated output": lambda: as_linked(LinkedProgram(max, donations={1: 0}), 1, 1),
    "donated parameter": lambda: as_linked(LinkedProgram(max, donations={0: 1}), 1, 1),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_call_is_refused(what):
    with pytest.raises(BackendError, match=r"; wanted |no function"):
        MALFORMED[what]()
