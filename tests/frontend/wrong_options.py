"""Functions that cannot be compiled, unknown options of jit, hooks, and unsupported definitions."""

from __future__ import annotations

import duograph as ms
import numpy as np
from duograph import nn, ops
from frontend.wrong_programs import F, right, wrong

STRICT = ("STRICT",)

# The factories here fail themselves: `jit` refuses before anything is compiled.


def plain(x):
    return x + 1


class Plain:
    """A class of the user's."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        return x * self.scale


@wrong(TypeError, r"(?i)jit.*class", F(2), eager=False, made=True)
def jit_of_a_class():
    return ms.jit(Plain)


@wrong(TypeError, r"(?i)jit.*(class|Cell)", F(2), eager=False, made=True)
def jit_of_a_cell_class():
    return ms.jit(nn.ReLU)


@wrong(TypeError, r"jit: got int; wanted a function", F(2), eager=False, made=True)
def jit_of_a_number():
    return ms.jit(3)


@wrong(TypeError, r"(?i)jit.*len", F(2), eager=False, made=True)
def jit_of_a_builtin():
    return ms.jit(len)


@wrong(TypeError, r"(?i)jit.*sin", F(2), eager=False, made=True)
def jit_of_a_numpy_function():
    return ms.jit(np.sin)


@wrong(TypeError, r"(?i)jit_class.*Cell", F(2), eager=False, made=True)
def jit_class_of_a_cell():
    @ms.jit_class
    class Net(nn.Cell):
        def construct(self, x):
            return x

    return Net()


@wrong(TypeError, r"(?i)jit_class.*", F(2), eager=False, made=True)
def jit_class_of_a_function():
    return ms.jit_class(plain)


@wrong((TypeError, ValueError), r"Uncallable", F(2), made=True)
def calling_an_object_without_call():
    @ms.jit_class
    class Uncallable:
        pass

    thing = Uncallable()

    def program(x):
        return thing(x)  # <- here: thing(x)

    return program


@wrong(ValueError, r"jit_level.*'O9'.*O0", F(2), eager=False, made=True)
def unknown_level():
    return ms.jit(plain, jit_level="O9")


@wrong(ValueError, r"capture_mode.*'nope'.*ast", F(2), eager=False, made=True)
def unknown_capture_mode():
    return ms.jit(plain, capture_mode="nope")


@wrong(ValueError, r"backend.*'nope'", F(2), eager=False, made=True)
def unknown_backend():
    return ms.jit(plain, backend="nope")


@wrong(TypeError, r"fullgraph.*'yes'", F(2), eager=False, made=True)
def fullgraph_that_is_no_bool():
    return ms.jit(plain, fullgraph="yes")


@wrong((TypeError, ValueError), r"dynamic.*7", F(2), eager=False, made=True)
def dynamic_that_is_no_flag():
    return ms.jit(plain, dynamic=7)


@wrong((TypeError, ValueError), r"no_such_option", F(2), eager=False, made=True)
def unknown_option():
    return ms.jit(plain, no_such_option=1)


@wrong(TypeError, r"jit_config.*3", F(2), eager=False, made=True)
def config_that_is_none():
    return ms.jit(plain, jit_config=3)


@wrong(ValueError, r"jit_level.*'O9'", F(2), eager=False, made=True)
def unknown_level_in_a_config():
    return ms.jit(plain, jit_config=ms.JitConfig(jit_level="O9"))


@wrong(ValueError, r"JitConfig: got ex.c_mode='nope'; wanted one of", F(2), eager=False, made=True)
def unknown_order_in_a_config():
    return ms.JitConfig(exc_mode="nope")


@wrong(ValueError, r"jit_syntax_level.*'NOPE'", F(2), eager=False, made=True)
def unknown_syntax_level():
    return ms.JitConfig(jit_syntax_level="NOPE")


@wrong(TypeError, r"mutable: got .*; wanted", F(2), eager=False, made=True)
def mutable_of_an_object():
    return ms.mutable(object())


@wrong(TypeError, r"mutable.*dynamic_len", F(2), eager=False, made=True)
def mutable_length_of_a_number():
    return ms.mutable(3, dynamic_len=True)


@wrong(TypeError, r"missing 1 required positional argument", F(2), eager=False, made=True)
def compile_without_arguments():
    class Net(nn.Cell):
        def construct(self, x):
            return x

    return Net().compile()


# ---- hooks --------------------------------------------------------------------------------------


@wrong(RuntimeError, r"(?i)hook", F(2), eager=False, made=True, falls_back=True)
def backward_hook_on_a_child():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()
            self.relu.register_backward_hook(lambda cell, grad_in, grad_out: None)

        def construct(self, x):
            return self.relu(x)  # <- here: self.relu(x)

    return Net()


@wrong(RuntimeError, r"(?i)hook", F(2), eager=False, made=True)
def hook_op():
    hook = ops.HookBackward(lambda grad: grad * 2)

    def program(x):
        return hook(x) * x  # <- here: hook(x)

    return program


@wrong(RuntimeError, r"(?i)hook", F(2), eager=False)
def hook_on_a_tensor(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 2)  # <- here
    return y


@wrong(RuntimeError, r"(?i)hook", F(2), eager=False, made=True)
def hook_registered_inside():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def construct(self, x):
            self.relu.register_forward_hook(lambda cell, args, out: out * 2)  # <- here
            return self.relu(x)

    return Net()


# ---- a bprop of one's own -----------------------------------------------------------------------


@wrong(TypeError, r"bprop", F(2), made=True)
def bprop_with_too_few_arguments():
    class Net(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, out):
            return (x,)

    net = Net()

    def program(x):
        return ms.grad(net)(x, x)

    return program


@wrong((TypeError, RuntimeError, ValueError), r"bprop.*(2|two|1|one)", F(2), made=True)
def bprop_with_too_few_results():
    class Net(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return (dout * y,)

    net = Net()

    def program(x):
        return ms.grad(net, grad_position=(0, 1))(x, x)

    return program


@right(F(2), made=True)
def own_bprop():
    class Net(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return dout * y * 3, dout * x

    net = Net()

    def program(x):
        return ms.grad(net, grad_position=(0, 1))(x, x)

    return program


@right(F(2), made=True)
def object_with_call():
    @ms.jit_class
    class Scale:
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return x * self.n

    thing = Scale(3)

    def program(x):
        return thing(x) + thing.n

    return program
