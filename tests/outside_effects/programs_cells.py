"""Programs that change Cells inside a compiled function, or between two calls of one."""

LAYER = """
from duograph import nn, runtime, hal
log = []
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(Tensor([2.0, 2.0, 2.0]), name='w')
        self.d = nn.Dropout(p=0.5)
        self.r = nn.ReLU()
    def construct(self, x): return self.r(x * self.w * (3 if self.training else 1))
net = Net()
opt = nn.SGD([net.w], 0.5)
__st = runtime.Stream()
__ev = runtime.Event(enable_timing=True)
count = 0
def f(a):
"""

INSIDE = {
    "sync": """
    runtime.synchronize()
    return a
""",
    "stream": """
    s = runtime.current_stream()
    log.append(type(s).__name__)
    return a
""",
    "event": """
    __ev.record()
    log.append(__ev.query())
    return a
""",
    "newevent": """
    e = runtime.Event()
    e.record()
    log.append(e.query())
    return a
""",
    "ctx": """
    with runtime.StreamCtx(__st):
        b = a * 2
    return b
""",
    "mem": """
    log.append(runtime.memory_allocated() >= 0)
    return a
""",
    "memi": "return a * (hal.memory_allocated() * 0 + 1)",
    "count": "return a * hal.device_count()",
    "name": """
    log.append(hal.get_device_name(0))
    return a
""",
    "set_train": """
    net.set_train(not net.training)
    return net(a)
""",
    "set_train2": """
    net.set_train()
    r = net(a)
    net.set_train(False)
    return r + net(a)
""",
    "set_grad": """
    net.set_grad()
    return net(a)
""",
    "to_float": """
    net.to_float(ms.float16)
    return net(a).astype(ms.float32)
""",
    "recompute": """
    net.recompute()
    return net(a)
""",
    "requires": """
    net.w.requires_grad = False
    return net(a) * len(net.trainable_params())
""",
    "pname": """
    log.append(net.w.name)
    net.w.name = 'v'
    return net(a)
""",
    "add_flags": """
    net.add_flags(foo=True)
    return net(a) * net.foo
""",
    "update_names": """
    net.update_parameters_name('p.')
    log.append(net.w.name)
    return net(a)
""",
    "insert_param": """
    net.insert_param_to_cell('q', ms.Parameter(Tensor([1.0]), name='q'))
    return net(a)
""",
    "insert_child": """
    net.insert_child_to_cell('z', nn.ReLU())
    return net(a)
""",
    "setcell": """
    net.r = nn.Tanh()
    return net(a)
""",
    "delcell": """
    del net.r
    net.r = nn.Tanh()
    return net(a)
""",
    "set_data": """
    net.w.set_data(net.w + 1)
    return net(a)
""",
    "init_params": """
    net.init_parameters_data()
    return net(a)
""",
    "apply": """
    net.apply(lambda c: log.append(type(c).__name__))
    return net(a)
""",
    "set_jit_config": """
    net.set_jit_config(ms.JitConfig(jit_level='O0'))
    return net(a)
""",
    "opt": """
    g = ms.grad(lambda t: net(t).sum(), None, [net.w])(a)
    opt(g if isinstance(g, tuple) else (g,))
    return net(a)
""",
    "optlr": """
    log.append(float(opt.get_lr().asnumpy()) if hasattr(opt, 'get_lr') else 0)
    return a
""",
    "parameters_dict": "return a * len(net.parameters_dict())",
    "setattr_training": """
    net.training = True
    return net(a)
""",
    "extend_repr": """
    log.append(len(repr(net)))
    return a
""",
    "cells": """
    log.append([type(c).__name__ for c in net.cells()])
    return a
""",
    "ncells": """
    log.append([n for n, c in net.cells_and_names()])
    return a
""",
    "primattr": """
    p.set_attr(log) if 0 else p.add_prim_attr('k', 1)
    return p(a, a)
p = ops.Add()
""",
    "init_prim": """
    p.init_prim_io_names(['a','b'],['c'])
    return p(a, a)
p = ops.Add()
""",
}

NETWORK = """
from duograph import nn
log = []
seq = nn.SequentialCell(nn.ReLU(), nn.ReLU6())
lst = nn.CellList([nn.ReLU(), nn.Tanh()])
cd = nn.CellDict({'a': nn.ReLU()}) if hasattr(nn, 'CellDict') else None
w1 = ms.Parameter(Tensor([2.0, 2.0, 2.0]), name='w1')
w2 = ms.Parameter(Tensor([3.0, 3.0, 3.0]), name='w2')
pt = ms.ParameterTuple([w1])
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = w1
        self.ws = pt
        self.seq = seq
        self.ls = lst
    def construct(self, x):
        x = self.seq(x) * self.w
        for c in self.ls: x = c(x)
        for p in self.ws: x = x + p
        return x
net = Net()
opt = nn.SGD([w1, w2], 0.5)
"""

CHANGED = {
    "seq_append": """
    seq.append(nn.Tanh())
    return net(a)
""",
    "lst_append": """
    lst.append(nn.Tanh())
    return net(a)
""",
    "lst_insert": """
    lst.insert(0, nn.Sigmoid())
    return net(a)
""",
    "lst_extend": """
    lst.extend([nn.Sigmoid()])
    return net(a)
""",
    "lst_set": """
    lst[0] = nn.Sigmoid()
    return net(a)
""",
    "seq_set": """
    seq[0] = nn.Sigmoid()
    return net(a)
""",
    "seq_del": """
    del seq[0]
    return net(a) * len(seq)
""",
    "seq_del2": """
    if len(seq) > 1: del seq[0]
    return net(a) * len(seq)
""",
    "lst_del": """
    if len(lst) > 1: del lst[0]
    return net(a)
""",
    "cd_set": """
    cd['b' + str(len(cd))] = nn.ReLU()
    return a * len(cd)
""",
    "cd_pop": """
    cd.pop('a') if len(cd) else 0
    return a * len(cd)
""",
    "cd_clear": """
    cd.clear()
    return a * len(cd)
""",
    "cd_update": """
    cd.update({'z': nn.ReLU()})
    return a * len(cd)
""",
    "unappend": """
    nn.SequentialCell.append(seq, nn.Tanh())
    return net(a)
""",
    "untrain": """
    nn.Cell.set_train(net, not net.training)
    return net(a) * (2 if net.training else 1)
""",
    "supertrain": """
    net.mine()
    return net(a)
""",
    "train": """
    net.set_train(not net.training)
    return a * (2 if net.training else 1)
""",
    "train2": """
    net.set_train(True)
    return a * (2 if net.training else 1)
""",
    "lambda": """
    list(map(lambda c: c.set_train(not c.training), [net]))
    return a * (2 if net.training else 1)
""",
    "methcall": """
    import operator
    operator.methodcaller('set_train', not net.training)(net)
    return a * (2 if net.training else 1)
""",
    "getattr": """
    getattr(net, 'set_train')(not net.training)
    return a * (2 if net.training else 1)
""",
    "partial": """
    import functools
    functools.partial(net.set_train, not net.training)()
    return a * (2 if net.training else 1)
""",
    "apply": """
    net.apply(lambda c: c.set_train(not c.training) and None)
    return a * (2 if net.training else 1)
""",
    "forcells": """
    for c in net.cells(): c.set_train(not c.training)
    return a * (2 if seq.training else 1)
""",
    "req": """
    for p in net.get_parameters(): p.requires_grad = not p.requires_grad
    return net(a) * len(net.trainable_params())
""",
    "optgroup": """
    opt.parameters
    return a * len(opt.parameters)
""",
    "vars": """
    vars(net)['k'] = 3
    return a * net.k
""",
    "dict": """
    net.__dict__['k'] = 3
    return a * net.k
""",
    "dictupd": """
    net.__dict__.update(k=i)
    return a * net.k
""",
    "setattrw": """
    net.w = Tensor([1.0, 1.0, 1.0]) * i
    return net(a)
""",
}

BETWEEN = {
    "seq_append": "seq.append(nn.Tanh())",
    "seq_set": "seq[0] = nn.Sigmoid()",
    "seq_del": "if len(seq) > 1: del seq[0]",
    "lst_insert": "lst.insert(0, nn.Sigmoid())",
    "lst_del": "if len(lst) > 1: del lst[0]",
    "w_replace": "net.w = w2 if i == 1 else w1",
    "w_new": "net.w = ms.Parameter(Tensor([5.0, 5.0, 5.0]) * i, name='w%d' % i)",
    "w_none": "net.w = None if i == 5 else net.w",
    "tie": "net.w = net.ws[0]",
    "ws": "net.ws = ms.ParameterTuple([w1, w2])",
    "wslist": "net.ws = [w1, w2][:i]",
    "child": "net.seq = lst[0]",
    "child2": "net._cells['seq'] = nn.Tanh()",
    "child3": "net.ls = [nn.ReLU()] * i",
    "insert": "net.insert_child_to_cell('q%d' % i, nn.ReLU()); net.seq = getattr(net, 'q%d' % i)",
    "delattr": "(delattr(net, 'w'), setattr(net, 'w', w2)) if i == 1 else None",
    "pdict": "net._params['w'] = w2",
    "wdata": "net.w.set_data(net.w * 2)",
    "winplace": "net.w[0] = 100.0 * i",
    "buf": "net.register_buffer('b%d' % i, Tensor([1.0]))",
    "construct": "net.construct = lambda x: x * i",
    "construct2": "Net.construct = lambda self, x: x * i * self.w",
    "cls": "net.__class__ = Net2",
    "forward_hook": "net.register_forward_hook(lambda c, i, o: o * 2)",
    "call": "Net.__call__ = lambda self, x: x * i",
    "seqclass": "seq.__class__ = Seq2",
    "train": "net.set_train(i % 2 == 0)",
    "reqgrad": "net.w.requires_grad = not net.w.requires_grad",
    "name": "net.w.name = 'x%d' % i",
}

CLASSES = """
class Net2(Net):
    def construct(self, x): return x * 100
class Seq2(nn.SequentialCell):
    def construct(self, x): return x * 100
"""

CALLS = {
    "call": "return net(a)",
    "grad": "return ms.grad(net)(a)",
    "weights": "return ms.grad(lambda t: net(t).sum(), None, net.trainable_params())(a)",
    "members": "return a * len(list(net.cells())) + sum(p.sum() for p in net.trainable_params())",
}
STEP = """
i = 0
def between():
    global i
    i += 1
    {change}
def f(a):
    {call}
"""

PROGRAMS = {
    **{f"layer_{name}": f"{LAYER}    {text.strip()}" for name, text in INSIDE.items()},
    **{
        f"cells_{name}": f"{NETWORK}i = 1\ndef f(a):\n    {text.strip()}"
        for name, text in CHANGED.items()
    },
    **{
        f"cells_{name}_then_{call}": NETWORK
        + CLASSES
        + STEP.format(change=change, call=CALLS[call])
        for name, change in BETWEEN.items()
        for call in CALLS
    },
}
