"""Calls that backends return: the core's own classes, or plain functions without optional facts."""

from duograph.backend.prepared import LinkedProgram, PreparedCall, as_linked, as_prepared


def test_a_plain_function_is_a_prepared_call():
    call = as_prepared(lambda x: x + 1)
    assert call.run(1) == call(1) == 2
    assert call.overwrites == () and not call.infallible
    assert not call.packings and call.fuse_consumer is None


def test_a_prepared_call_is_kept():
    call = PreparedCall(max, overwrites=((0, 0),), infallible=True)
    assert as_prepared(call) is call


def test_a_plain_function_is_a_linked_program():
    program = as_linked(lambda handles, donated=(): handles)
    assert program.run([1]) == [1]
    assert program.donations is None and program.bind is None
    assert as_linked(program) is program


def test_a_linked_program_names_its_donations():
    assert LinkedProgram(lambda handles, donated=(): None, donations={0: 1}).donations == {0: 1}
