"""grad, vjp, jvp and GradOperation: forms, orders, custom rules, hooks, memory, threads."""

from __future__ import annotations

import gc
import threading
import weakref

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.ops._grad.grad_base import binop_grad_common, bprop_getters


def t(*values: float) -> ms.Tensor:
    return ms.Tensor(np.array(values, np.float32))


def close(got: ms.Tensor, want: object) -> None:
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6)


class TestForms:
    """C10: `grad(fn, grad_position, weights, has_aux, return_ids)`"""

    def test_grad_operation_returns_a_bare_gradient(self) -> None:
        """C02: `ops.GradOperation()` default differentiates the first input and returns a bare
        Tensor
        """
        close(ops.GradOperation()(lambda x, y: x * y)(t(2), t(8)), [8])

    def test_get_all(self) -> None:
        """C05: `GradOperation(get_all=True)` returns a tuple for all inputs"""
        got = ops.GradOperation(get_all=True)(lambda x, y: x + y)(t(1, 2, 3), t(4, 5, 6))
        assert isinstance(got, tuple)
        close(got[0], [1, 1, 1])
        close(got[1], [1, 1, 1])

    def test_get_by_list(self) -> None:
        """C07, C08: `get_by_list=True` with a ParameterTuple: tuple of weight grads"""
        w = ms.Parameter(t(3), name="w")
        weights = ms.ParameterTuple([w])
        (g,) = ops.GradOperation(get_by_list=True)(lambda x: x * w, weights)(t(2))
        close(g, [2])
        inputs, params = ops.GradOperation(get_all=True, get_by_list=True)(
            lambda x: x * w, weights
        )(t(2))
        close(inputs[0], [3])
        close(params[0], [2])

    def test_sens_param(self) -> None:
        """C09: `sens_param=True`: extra last argument scales the output"""
        close(ops.GradOperation(sens_param=True)(lambda x: x * x)(t(1, 2), t(10, 100)), [20, 400])

    def test_grad_position(self) -> None:
        """C12: `grad_position` int gives Tensor, tuple gives tuple, None needs weights, both None
        raises ValueError
        """
        f = lambda x, y: x * x * y  # noqa: E731
        assert isinstance(ms.grad(f, 1)(t(2), t(3)), ms.Tensor)
        got = ms.grad(f, (0, 1))(t(2), t(3))
        close(got[0], [12])
        close(got[1], [4])
        with pytest.raises(ValueError, match="at least one"):
            ms.grad(f, None, None)

    def test_has_aux(self) -> None:
        """C13: `has_aux=True` returns aux without differentiating it"""
        (value, aux), g = ms.value_and_grad(lambda x: (x * x, x * 100), has_aux=True)(t(3))
        close(value, [9])
        close(aux, [300])
        close(g, [6])
        g, aux = ms.grad(lambda x: (x * x, x * 100), has_aux=True)(t(3))
        close(g, [6])
        assert isinstance(aux, tuple)
        close(aux[0], [300])

    def test_return_ids(self) -> None:
        """C14: `return_ids=True` pairs grads with position or parameter name"""
        w = ms.Parameter(t(3), name="w")
        inputs, params = ms.grad(lambda x: x * w, 0, [w], return_ids=True)(t(2))
        assert inputs[0] == 0
        assert params[0][0] == "w"

    def test_other_inputs_are_skipped(self) -> None:
        """C15: Non-Tensor inputs are skipped in the gradient tuple"""
        got = ops.GradOperation(get_all=True)(lambda x, y, z: x * y * z)(t(1), 2, t(3))
        assert len(got) == 2
        close(got[0], [6])
        close(got[1], [2])

    def test_several_outputs(self) -> None:
        """C16: Sum of outputs when several outputs, all-ones seed"""
        close(ms.grad(lambda x: (x * 2, x * x))(t(3)), [8])

    def test_gradient_of_integers(self) -> None:
        """B16: Grad w.r.t. integer tensors is allowed and returns integers"""
        g = ms.grad(lambda x: x * x)(ms.Tensor([3]))
        assert g.dtype is ms.int64
        close(g, [6])

    def test_unused_input_has_zero_gradient(self) -> None:
        close(ms.grad(lambda x, y: x, 1)(t(1), t(2, 3)), [0, 0])

    def test_nested_containers(self) -> None:
        g = ms.grad(lambda xs: xs[0] * xs[1]["a"])((t(2), {"a": t(5)}))
        close(g[0], [5])
        close(g[1]["a"], [2])

    def test_mixed_dtypes(self) -> None:
        g = ms.grad(lambda x, y: x * y, (0, 1))(t(2), ms.Tensor([3], ms.int32))
        assert g[0].dtype is ms.float32
        assert g[1].dtype is ms.int32

    def test_gradient_of_broadcast_operands(self) -> None:
        x, y = ms.Tensor(np.ones((2, 3), np.float32)), t(1, 2, 3)
        gx, gy = ms.grad(lambda x, y: x * y, (0, 1))(x, y)
        close(gx, [[1, 2, 3], [1, 2, 3]])
        close(gy, [2, 2, 2])


class TestOrders:
    def test_third_derivative(self) -> None:
        """C31: Higher-order gradients (grad of grad) in both modes"""
        f = lambda x: x * x * x * x  # noqa: E731
        close(ms.grad(ms.grad(ms.grad(f)))(t(2)), [48])

    def test_perturbations_do_not_mix(self) -> None:
        """d/dx (x * d/dy (x + y)) at 1 is 1, not 2: the inner derivative must not see the outer
        one.
        """
        close(ms.grad(lambda x: x * ms.grad(lambda y: x + y)(t(1)))(t(1)), [1])
        close(ms.grad(lambda x: x * ms.grad(lambda y: x * y)(t(1)))(t(3)), [6])

    def test_mixed_partials(self) -> None:
        f = lambda x, y: x * x * y * y * y  # noqa: E731
        close(ms.grad(ms.grad(f, 0), 1)(t(2), t(3)), [2 * 2 * 3 * 9])

    def test_second_order_through_weights(self) -> None:
        w = ms.Parameter(t(3), name="w")
        inner = ms.grad(lambda x: x * x * w * w, 0)
        (g,) = ms.grad(inner, None, [w])(t(2))
        close(g, [2 * 2 * 2 * 3])

    def test_jvp_vjp(self) -> None:
        """C34: `vjp`, `jvp`, `jacrev`, `jacfwd`, `vmap`"""
        value, tangent = ms.jvp(lambda x: x * x * x, t(2), t(1))
        close(value, [8])
        close(tangent, [12])
        value, pull = ms.vjp(lambda x, y: x * y, t(2), t(3))
        for _ in range(2):
            a, b = pull(t(1))
            close(a, [3])
            close(b, [2])

    def test_jvp_of_grad(self) -> None:
        """C35: Hessian helper, forward-over-reverse"""
        f = lambda x: x * x * x  # noqa: E731
        close(ms.jvp(ms.grad(f), t(2), t(1))[1], [12])


class TestRules:
    @pytest.fixture(autouse=True)
    def _restore(self):
        before = ops.mul.bprop_rule
        yield
        ops.mul.bprop_rule = before
        from duograph.op_tables import rules_changed

        rules_changed()

    def test_new_rule_for_mul_is_used_at_once(self) -> None:
        """C17, C19: registering a new rule for Mul changes the gradient, for every spelling of the
        op
        """
        f = lambda x, y: x * y  # noqa: E731
        g = lambda x, y: ops.Mul()(x, y)  # noqa: E731
        close(ms.grad(f)(t(2), t(5)), [5])

        @bprop_getters.register(ops.Mul)
        def get_bprop_mul(self):
            mul_func = ops.Mul()

            def bprop(x, y, out, dout):
                bc_dx = mul_func(y, dout) * 10
                bc_dy = mul_func(x, dout)
                return binop_grad_common(x, y, bc_dx, bc_dy)

            return bprop

        close(ms.grad(f)(t(2), t(5)), [50])
        close(ms.grad(g)(t(2), t(5)), [50])

    def test_wrong_number_of_gradients(self) -> None:
        """C28: Wrong number of gradients from a rule is reported with rule name and counts"""

        @bprop_getters.register(ops.Mul)
        def getter(self):
            return lambda x, y, out, dout: (dout,)

        with pytest.raises(RuntimeError, match="mul: its bprop returned 1 gradients, wanted 2"):
            ms.grad(lambda x, y: x * y)(t(1), t(1))

    def test_wrong_shape_of_gradient(self) -> None:
        """C29: Wrong gradient *shape* is reported, not broadcast away"""

        @bprop_getters.register(ops.Mul)
        def getter(self):
            return lambda x, y, out, dout: (dout, dout)

        with pytest.raises(ValueError, match=r"shape \(2, 3\) for an operand of shape \(3,\)"):
            ms.grad(lambda x, y: x * y, 1)(ms.Tensor(np.ones((2, 3), np.float32)), t(1, 2, 3))

    def test_rule_of_wrong_arity_is_refused(self) -> None:
        @bprop_getters.register(ops.Mul)
        def getter(self):
            return lambda x, out, dout: dout

        with pytest.raises(TypeError, match="takes 3 arguments, wanted 4"):
            ms.grad(lambda x, y: x * y)(t(1), t(1))

    def test_rule_may_not_look_at_values(self) -> None:
        @bprop_getters.register(ops.Mul)
        def getter(self):
            return lambda x, y, out, dout: (dout * float(x), dout)

        with pytest.raises(TypeError, match="may not look at values"):
            ms.grad(lambda x, y: x * y)(t(1), t(1))


class TestTape:
    def test_overwriting_after_use(self) -> None:
        """C30: In-place change of a value needed by backward is caught or saved"""

        def f(x):
            y = x * 3
            z = y * y
            y += 100  # another tensor: the value that z kept stays
            return z

        close(ms.grad(f)(t(2)), [36])

    def test_set_data_between_forward_and_backward(self) -> None:
        w = ms.Parameter(t(3), name="w")
        x = t(2)
        _, pull = ms.vjp(lambda x: x * w, x)
        w.set_data(t(100))
        close(pull(t(1))[0], [3])

    def test_memory_of_discarded_results(self) -> None:
        """37,000 discarded results inside one grad call leave memory flat: nodes die with their
        outputs
        """
        alive: list[int] = []

        def f(x):
            for i in range(37000):
                y = x * 2.0
                if i % 9250 == 0:
                    gc.collect()
                    alive.append(len([o for o in gc.get_objects() if type(o).__name__ == "Node"]))
            return y

        close(ms.grad(f)(t(1)), [2])
        assert max(alive) <= min(alive) + 2

    def test_nodes_die_with_their_outputs(self) -> None:
        seen: list[weakref.ref] = []

        def f(x):
            y = x * x
            seen.append(weakref.ref(y._edge))
            del y
            gc.collect()
            assert seen[0]() is None
            return x * 2

        close(ms.grad(f)(t(1)), [2])

    def test_assigned_values_are_detached_from_the_tape(self) -> None:
        average, buffer = ms.Parameter(t(0, 0), name="average"), t(0, 0)
        seen: list[weakref.ref] = []

        def f(x):
            y = x * x
            seen.append(weakref.ref(y._edge))
            ops.assign(average, average * 0.5 + y)
            buffer[0] = y[0]
            return (y * average * buffer).sum()

        for want in (6 * 2**5, 6 * 2**5 + 8 * 2**3):  # of x^6, then of x^6 + 2 x^4
            close(ms.grad(f)(t(2, 3)), [want, 0])
            gc.collect()
            assert average._type.level == buffer._type.level == 0
            assert seen[-1]() is None
        close(average, [6, 13.5])

    def test_a_running_sum_inside_the_function_keeps_no_tape(self) -> None:
        total = [t(0)]

        def f(x):
            y = x * x
            total[0] = total[0] + y
            return y

        alive = []
        for _ in range(5):
            ms.grad(f)(t(3))
            gc.collect()
            alive.append(sum(type(o).__name__ == "Node" for o in gc.get_objects()))
        assert alive[-1] == alive[1]
        close(total[0], [45])

    def test_result_is_not_recorded(self) -> None:
        value, g = ms.value_and_grad(lambda x: x * x)(t(3))
        assert value._type.level == 0
        assert g._type.level == 0

    def test_stashed_intermediate_does_not_record_later(self) -> None:
        kept = []

        def f(x):
            y = x * x
            kept.append(y)
            return y

        ms.grad(f)(t(3))
        total = kept[0]
        for _ in range(3):
            total = total + 1
        assert total._type.level == 0
        close(total, [12])

    def test_long_chain_does_not_overflow_the_stack(self) -> None:
        def f(x):
            for _ in range(50000):
                x = x + 1
            return x

        close(ms.grad(f)(t(1)), [1])

    def test_gradient_of_a_loop(self) -> None:
        """C40: Loop network gradient w.r.t. x is ones, w.r.t. z is 9 after summing over the
        broadcast
        """
        z = ms.Parameter(t(1), name="z")

        def f(x):
            for _ in range(3):
                x = x + z
            return x

        gx, (gz,) = ms.grad(f, 0, [z])(t(1, 2, 3))
        close(gx, [1, 1, 1])
        close(gz, [9])

    def test_gradient_of_add_mul_add(self) -> None:
        """C39: The gradient of the seed's Add/Mul/Add is 4096 everywhere at ones (1024 x^4)."""

        def f(x):
            x = x + x
            x = x + x
            x = x * x
            x = x * x
            x = x + x
            return x + x

        x = ms.Tensor(np.ones([3, 3], np.float32))
        close(f(x), np.full((3, 3), 1024))
        close(ms.grad(f)(x), np.full((3, 3), 4096))

    def test_threads_have_their_own_tape(self) -> None:
        w = ms.Parameter(t(3), name="w")
        wrong = []

        def work(k: int) -> None:
            for _ in range(200):
                (g,) = ms.grad(lambda x: x * w * w, None, [w])(t(k))
                if float(g) != 6 * k:
                    wrong.append((k, float(g)))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
        for th in threads:
            th.start()
        for th in threads:
            th.join()
        assert not wrong
        assert w._type.level == 0

    def test_an_error_in_the_forward_leaves_nothing_behind(self) -> None:
        w = ms.Parameter(t(3), name="w")

        def f(x):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            ms.grad(f, 0, [w])(t(1))
        assert w._type.level == 0
        close(ms.grad(lambda x: x * w)(t(1)), [3])


class TestErrors:
    @pytest.mark.parametrize(
        ("call", "kind", "pattern"),
        [
            (lambda: ms.grad(3), TypeError, "got int; wanted a function or a Cell"),
            (lambda: ms.grad(lambda x: x, -1), ValueError, "grad_position -1"),
            (lambda: ms.grad(lambda x: x, (0, 0)), ValueError, "one twice"),
            (lambda: ms.grad(lambda x: x, "0"), TypeError, "wanted an int, a tuple"),
            (lambda: ms.grad(lambda x: x, 1)(t(1)), ValueError, "grad_position 1 and 1 positional"),
            (lambda: ms.grad(lambda x: 3)(t(1)), RuntimeError, "without a Tensor"),
            (lambda: ms.grad(lambda x: x, 0, [t(1)])(t(1)), TypeError, "wanted Parameters"),
            (lambda: ms.grad(lambda x: x, has_aux=True)(t(1)), TypeError, "wanted a tuple"),
            (lambda: ms.grad(lambda x: x, 0, 3), TypeError, "got int among the weights"),
            (lambda: ms.grad(lambda x: x, sens_param=True)(), TypeError, "cotangent of the result"),
            (lambda: ms.vjp(lambda x: x, t(1))[1]("a"), TypeError, "got tuple without a Tensor"),
            (lambda: ms.vjp(lambda x: t(1), 2.0), TypeError, "no Tensor among the inputs"),
            (lambda: ms.jvp(lambda x: x, t(1), 1.0), TypeError, "direction float"),
            (lambda: ops.GradOperation(get_all=1), TypeError, "get_all=1"),
            (lambda: ops.GradOperation(get_by_list=True)(lambda x: x), TypeError, "ParameterTuple"),
        ],
    )
    def test_error_messages(self, call, kind, pattern) -> None:
        with pytest.raises(kind, match=pattern):
            call()


@pytest.mark.parametrize("function", [ms.jacrev, ms.jacfwd])
@pytest.mark.parametrize("position", [1, (0, 3)])
def test_jacobians_name_a_position_beyond_the_arguments(function, position):
    with pytest.raises(TypeError, match=r"grad_position \d and 1 positional arguments"):
        function(lambda x: x * x, position)(ms.Tensor([1.0]))
