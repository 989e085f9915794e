"""Passes on graphs written as text: what goes in, what comes out."""

from __future__ import annotations

import textwrap

import duograph  # noqa: F401  (the op table)
import pytest
from duograph import passes
from duograph.errors import GraphError
from duograph.ir.text import parse, to_text
from duograph.ir.verify import verify
from duograph.passes.common_subexpressions import merge_common_subexpressions
from duograph.passes.dead_code import remove_dead_code
from duograph.passes.simplify import simplify

X = "%0: float32[2, 3]"
TYPE = "float32[2, 3]"


def graph(body: str, head: str = X) -> str:
    inner = textwrap.indent(textwrap.dedent(body).strip(), "  ")
    return f"graph({head}) {{\n{inner}\n}}"


def after(step, body: str, head: str = X) -> str:
    found = verify(step(verify(parse(graph(body, head)))))
    # numbered as read back: what counts is the structure
    return to_text(parse(to_text(remove_dead_code(found))))


def same(step, body: str, want: str, head: str = X) -> None:
    assert after(step, body, head) == to_text(parse(graph(want, head)))


UNCHANGED = "return %0"


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (f"%1 = identity(%0) : {TYPE}\nreturn %1", UNCHANGED),
        (f"%1 = cast(%0, dtype=float32) : {TYPE}\nreturn %1", UNCHANGED),
        (
            "%1 = cast(%0, dtype=float64) : float64[2, 3]\n"
            f"%2 = cast(%1, dtype=float32) : {TYPE}\nreturn %2",
            UNCHANGED,
        ),
        (  # through a narrower dtype values are lost: it stays
            "%1 = cast(%0, dtype=float16) : float16[2, 3]\n"
            f"%2 = cast(%1, dtype=float32) : {TYPE}\nreturn %2",
            "%1 = cast(%0, dtype=float16) : float16[2, 3]\n"
            f"%2 = cast(%1, dtype=float32) : {TYPE}\nreturn %2",
        ),
        (f"%1 = reshape(%0, shape=(2, 3)) : {TYPE}\nreturn %1", UNCHANGED),
        (
            "%1 = reshape(%0, shape=(6,)) : float32[6]\n"
            "%2 = reshape(%1, shape=(3, 2)) : float32[3, 2]\nreturn %2",
            "%1 = reshape(%0, shape=(3, 2)) : float32[3, 2]\nreturn %1",
        ),
        (
            "%1 = reshape(%0, shape=(6,)) : float32[6]\n"
            f"%2 = reshape(%1, shape=(2, 3)) : {TYPE}\nreturn %2",
            UNCHANGED,
        ),
        (
            "%1 = transpose(%0, perm=(1, 0)) : float32[3, 2]\n"
            f"%2 = transpose(%1, perm=(1, 0)) : {TYPE}\nreturn %2",
            UNCHANGED,
        ),
        (f"%1 = broadcast_to(%0, shape=(2, 3)) : {TYPE}\nreturn %1", UNCHANGED),
        (f"%1 = reduce_sum(%0, axis=(), keepdims=False) : {TYPE}\nreturn %1", UNCHANGED),
        (f"%1 = neg(%0) : {TYPE}\n%2 = neg(%1) : {TYPE}\nreturn %2", UNCHANGED),
        (
            "%1 = fill(shape=(), value=1.0, dtype=float32) : float32[]\n"
            f"%2 = mul(%0, %1) : {TYPE}\nreturn %2",
            UNCHANGED,
        ),
        (
            "%1 = fill(shape=(), value=0.0, dtype=float32) : float32[]\n"
            f"%2 = sub(%0, %1) : {TYPE}\nreturn %2",
            UNCHANGED,
        ),
        (  # -0.0 + 0.0 is 0.0: an addition of zero is no identity
            "%1 = fill(shape=(), value=0.0, dtype=float32) : float32[]\n"
            f"%2 = add(%0, %1) : {TYPE}\nreturn %2",
            "%1 = fill(shape=(), value=0.0, dtype=float32) : float32[]\n"
            f"%2 = add(%0, %1) : {TYPE}\nreturn %2",
        ),
        (
            "%1 = fill(shape=(), value=2.0, dtype=float32) : float32[]\n"
            "%2 = fill(shape=(), value=0.5, dtype=float32) : float32[]\n"
            "%3 = mul(%1, %2) : float32[]\n"
            f"%4 = mul(%0, %3) : {TYPE}\nreturn %4",
            UNCHANGED,
        ),
        (
            "%1 = fill(shape=(), value=3, dtype=int32) : int32[]\n"
            "%2 = cast(%1, dtype=float32) : float32[]\n"
            f"%3 = broadcast_to(%2, shape=(2, 3)) : {TYPE}\n%4 = add(%0, %3) : {TYPE}\nreturn %4",
            f"%1 = fill(shape=(2, 3), value=3.0, dtype=float32) : {TYPE}\n"
            f"%2 = add(%0, %1) : {TYPE}\nreturn %2",
        ),
    ],
)
def test_simplify(body: str, want: str) -> None:
    same(simplify, body, want)


def test_common_subexpressions() -> None:
    same(
        merge_common_subexpressions,
        f"%1 = exp(%0) : {TYPE}\n%2 = exp(%0) : {TYPE}\n%3 = add(%1, %2) : {TYPE}\nreturn %3, %2",
        f"%1 = exp(%0) : {TYPE}\n%2 = add(%1, %1) : {TYPE}\nreturn %2, %1",
    )


def test_calls_with_different_attributes_are_not_merged() -> None:
    body = (
        "%1 = fill(shape=(), value=0.0, dtype=float32) : float32[]\n"
        "%2 = fill(shape=(), value=-0.0, dtype=float32) : float32[]\n"
        f"%3 = mul(%0, %1) : {TYPE}\n%4 = mul(%0, %2) : {TYPE}\nreturn %3, %4"
    )
    same(merge_common_subexpressions, body, body)


def test_dead_code() -> None:
    same(
        remove_dead_code,
        f"%1 = exp(%0) : {TYPE}\n%2 = neg(%0) : {TYPE}\nreturn %2",
        f"%1 = neg(%0) : {TYPE}\nreturn %1",
    )


def test_pipeline_order() -> None:
    same(
        passes.run,
        f"%1 = identity(%0) : {TYPE}\n%2 = exp(%1) : {TYPE}\n%3 = exp(%0) : {TYPE}\n"
        f"%4 = add(%2, %3) : {TYPE}\nreturn %4",
        f"%1 = exp(%0) : {TYPE}\n%2 = add(%1, %1) : {TYPE}\nreturn %2",
    )


@pytest.mark.parametrize(
    ("body", "pattern"),
    [
        (f"%1 = add(%0, %2) : {TYPE}\nreturn %1", "%2 is used before it is defined"),
        (f"%1 = fly(%0) : {TYPE}\nreturn %1", "no op 'fly'"),
        (f"%1 = exp(%0 : {TYPE}\nreturn %1", "wanted `%n = op"),
        ("%1 = exp(%0) : float33[2]\nreturn %1", "float33"),
        (f"%1 = exp(%0) : {TYPE}\n%1 = exp(%0) : {TYPE}\nreturn %1", "defined twice"),
        (f"%1 = exp(%0) : {TYPE}", "wanted `return`"),
    ],
)
def test_text_errors_name_the_line(body: str, pattern: str) -> None:
    with pytest.raises(GraphError, match=pattern):
        parse(graph(body))


@pytest.mark.parametrize(
    ("body", "pattern"),
    [
        ("%1 = exp(%0) : float32[3, 2]\nreturn %1", r"recorded as .*its rule gives"),
        (f"%1 = exp(%0, %0) : {TYPE}\nreturn %1", "got 2 operands, wanted 1"),
        (f"%1 = exp(%0, axis=1) : {TYPE}\nreturn %1", "got attributes"),
        (
            "%1 = fill(shape=(), value=1, dtype=int32) : int32[]\n"
            f"%2 = add(%0, %1) : {TYPE}\nreturn %2",
            "after promotion",
        ),
    ],
)
def test_verifier_finds(body: str, pattern: str) -> None:
    with pytest.raises(GraphError, match=pattern):
        verify(parse(graph(body)))
