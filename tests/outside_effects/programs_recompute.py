"""Programs with Cells that a derivative runs twice: `Cell.recompute` and `ms.recompute`."""

NET = """
from duograph import nn
log = []
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.w = ms.Parameter(Tensor([1.0, 1.0, 1.0]), name='w')
        self.s = ms.Parameter(Tensor(1.0), name='s', requires_grad=False)
    def construct(self, x):
        {effect}
        return ops.sin(x * self.w * self.s) * x
net = Net()
{ask}
class Outer(nn.Cell):
    def __init__(self, n):
        super().__init__()
        self.net = n
    def construct(self, x): return self.net(x) * 2
outer = Outer(net)
def f(a): return {call}
"""
EFFECTS = {
    "count": "self.n += 1",
    "append": "log.append(1)",
    "keep": "log.append(x)",
    "print": "print('x')",
    "data": "log.append(float(x.asnumpy().sum()))",
    "attribute": "self.last = x",
    "global": "global seen; seen = 2",
    "raise": "if x.sum() < 0: raise ValueError('neg')",
    "parameter": "self.s += 1",
    "assign": "ops.assign(self.s, 1 - self.s)",
}
CALLS = {
    "cell": "net(a)",
    "inside": "outer(a)",
    "grad": "ms.grad(net)(a)",
    "grad_inside": "ms.grad(outer)(a)",
    "twice": "ms.grad(lambda t: net(t).sum() + net(t * 2).sum())(a)",
    "weights": "ms.value_and_grad(outer, None, [net.w])(a)[1][0]",
    "function": "ms.recompute(net, a)",
    "grad_of_function": "ms.grad(lambda t: ms.recompute(net, t))(a)",
}
NORMALISED = """
from duograph import nn
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.d = nn.Dense(3, 3, weight_init='ones', bias_init='zeros')
        self.b = nn.BatchNorm1d(3)
    def construct(self, x):
        x = ops.stack([x, x * 2])
        return ops.sin(self.b(self.d(x)) * x).sum(0)
net = Net()
net.set_train()
{ask}
def f(a): return {call}
"""
ASKS = {
    "whole": "net.recompute()",
    "parts": "net.b.recompute(); net.d.recompute()",
    "none": "pass",
}

PROGRAMS = {
    **{
        f"recompute_{effect}_{call}": NET.format(
            effect=EFFECTS[effect],
            call=CALLS[call],
            ask="pass" if "function" in call else "net.recompute()",
        )
        for effect in EFFECTS
        for call in CALLS
    },
    **{
        f"recompute_statistics_{ask}_{call}": NORMALISED.format(ask=ASKS[ask], call=CALLS[call])
        for ask in ASKS
        for call in ("cell", "grad", "twice", "function", "grad_of_function")
    },
}
