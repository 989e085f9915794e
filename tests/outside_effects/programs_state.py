"""Programs that use objects of the framework with state in Python, its files and its settings."""

NET = """
import os
from duograph import nn, Parameter
class N(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([1., 2., 3.]), name='w')
        self.v = Parameter(Tensor([.5, .25, .125]), name='v')
    def construct(self, x):
        return (x * self.w + self.v) * 2.0
n = N()
i = 0
file = os.path.join(os.environ['PYTEST_FILES'], 'net.ckpt')
"""
SEED = """
ms.set_seed(1)
"""

PROGRAMS = {
    "seed_inside": SEED
    + """
def f(a):
    ms.set_seed(3)
    r = ops.rand(3)
    ms.manual_seed(5)
    g = ms.Generator(); g.manual_seed(3)
    return a + r + ops.rand(3, generator=g) if False else a + r + ops.rand(3)
""",
    "rng_state": SEED
    + """
def f(a):
    s = ms.get_rng_state()
    r = ops.rand(3)
    ms.set_rng_state(s)
    return a + r - ops.rand(3)
""",
    "load_inside": NET
    + """
ms.save_checkpoint(n, file)
def f(a):
    r = n(a)
    p = ms.load_checkpoint(file)
    n.w.set_data(n.w + 1)
    ms.load_param_into_net(n, p)
    return r + n(a)
def between():
    n.w.set_data(n.w * 3)
    ms.save_checkpoint(n, file)
""",
    "dataset_iter": """
import duograph.dataset as ds
dset = ds.NumpySlicesDataset({'x': np.arange(12, dtype=np.float32).reshape(4, 3)}, shuffle=False)
it = dset.create_tuple_iterator(num_epochs=1)
def f(a):
    (x,) = next(it)
    return a + x
""",
    "dataset_loop": """
import duograph.dataset as ds
k = 0.
dset = ds.NumpySlicesDataset({'x': np.arange(12, dtype=np.float32).reshape(4, 3)}, shuffle=False)
def f(a):
    for d in dset.create_dict_iterator():
        a = a + d['x']
    for (x,) in dset.create_tuple_iterator(output_numpy=True):
        a = a + Tensor(x)
    return a * dset.get_dataset_size()
def between():
    global dset
    dset = dset.repeat(2)
""",
    "dataset_gen": """
import duograph.dataset as ds
k = 1.0
def gen():
    for i in range(3): yield (np.full(3, i * k, np.float32),)
dset = ds.GeneratorDataset(gen, ['x'], shuffle=False)
def f(a):
    for (x,) in dset.create_tuple_iterator():
        a = a + x
    return a
def between():
    global k
    k += 1
""",
    "metric_const": """
from duograph import train
m = train.Loss()
def f(a):
    m.update(Tensor(3.0))
    m.update(Tensor(5.0))
    return a * m.eval()
i = 0
def between():
    global i
    i += 1
    m.clear()
    m.update(Tensor(float(i)))
""",
    "metric_clear": """
from duograph import train
m = train.Loss()
m.update(Tensor(3.0))
def f(a):
    r = a * m.eval()
    m.clear()
    m.update(a.sum())
    return r
def between():
    m.update(Tensor(100.0))
""",
    "metric_eval": """
from duograph import train
m = train.Loss()
m.update(Tensor(3.0))
def f(a):
    return a * m.eval()
def between():
    m.update(Tensor(100.0))
""",
    "callback": """
from duograph import train
class CB(train.Callback):
    def __init__(self): self.n = 0; self.log = []
    def step_end(self, ctx):
        p = ctx.original_args()
        self.n += 1
        p.cur_step_num += 1
        self.log.append(p.cur_step_num)
        if self.n > 2: ctx.request_stop()
from duograph.train import RunContext
class P(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
p = P(); p.cur_step_num = 0
ctx = RunContext(p)
cb = CB()
def f(a):
    cb.step_end(ctx)
    if ctx.get_stop_requested(): return a * 0
    return a * p.cur_step_num
""",
    "stop_req": """
from duograph.train import RunContext
ctx = RunContext({})
def f(a):
    if ctx.get_stop_requested(): return a * 0
    return a
i = 0
def between():
    global i
    i += 1
    if i == 2: ctx.request_stop()
""",
    "stop_req_in": """
from duograph.train import RunContext
ctx = RunContext({})
def f(a):
    r = a * (0 if ctx.get_stop_requested() else 1)
    ctx.request_stop()
    return r
def between():
    ctx._stop_requested = False
""",
    "save_const": NET
    + """
def f(a):
    ms.save_checkpoint(n, file)
    return a
res = []
def between():
    res.append(ms.load_checkpoint(file)['w'].asnumpy().tolist())
    n.w.set_data(n.w + 1)
""",
    "get_seed": SEED
    + """
i = 0
def f(a): return a * ms.get_seed()
def between():
    global i
    i += 1
    ms.set_seed(i + 10)
""",
    "generator": SEED
    + """
g = ms.Generator()
g.manual_seed(3)
def f(a):
    r = a + g.initial_seed()
    return r + ops.rand(3, generator=g) if False else r
i = 5
def between():
    global i
    i += 1
    g.manual_seed(i)
""",
    "generator_in": SEED
    + """
g = ms.Generator()
g.manual_seed(3)
from duograph import mint
def f(a):
    g.manual_seed(4)
    r = mint.rand(3, generator=g)
    s = g.get_state()
    q = mint.rand(3, generator=g)
    g.set_state(s)
    return a + r + q - mint.rand(3, generator=g)
""",
    "set_ctx2": """
got = []
def f(a):
    got.append(ms.get_context('max_call_depth'))
    ms.set_context(max_call_depth=ms.get_context('max_call_depth') + 1)
    return a
ms.set_context(max_call_depth=1000)
""",
    "lossscalemgr": """
from duograph import amp
m = amp.DynamicLossScaleManager(init_loss_scale=8, scale_factor=2, scale_window=2)
fm = amp.FixedLossScaleManager(4.0)
def f(a):
    r = a * m.get_loss_scale() * fm.get_loss_scale()
    m.update_loss_scale(False)
    return r
def between():
    m.update_loss_scale(True)
""",
    "sched_objs": NET
    + """
from duograph.experimental import optim
opt = optim.Adam([{'params': [n.w]}, {'params': [n.v], 'lr': 0.5}], lr=0.1)
S = optim.lr_scheduler
s1 = S.LambdaLR(opt, lr_lambda=[lambda e: 0.9 ** e, lambda e: 0.5 ** e])
g = ms.value_and_grad(lambda x: n(x).sum(), None, opt.parameters)
def f(a):
    l, gr = g(a)
    opt(gr)
    s1.step()
    return l, [x * 1 for x in s1.get_last_lr()], s1.last_epoch
def between():
    global i
    i += 1
    if i == 2: s1.lr_lambdas[0] = lambda e: 3.0
""",
    "sched_cos": NET
    + """
from duograph.experimental import optim
opt = optim.SGD(n.trainable_params(), lr=0.1)
S = optim.lr_scheduler
s1 = S.CosineAnnealingWarmRestarts(opt, 3)
s2 = S.ReduceLROnPlateau(opt, patience=0)
def f(a):
    s1.step()
    s2.step(a.sum())
    opt((a, a))
    return opt.param_groups[0]['lr'] * 1, n.w * 1
""",
    "cell_call": """
from duograph import nn
class N(nn.Cell):
    def __call__(self, x, *r): return super().__call__(x + 1, *r) * 2
    def construct(self, x): return x * 3
n = N()
i = 0
def f(a): return n(a)
def between():
    global i
    i += 1
    if i == 1: N.__call__ = lambda self, x: x
    if i == 2: del N.__call__
""",
    "cell_call_later": """
from duograph import nn
class N(nn.Cell):
    def construct(self, x): return x * 3
n = N()
i = 0
def f(a): return n(a)
def between():
    global i
    i += 1
    if i == 2: N.__call__ = lambda self, x: x
""",
    "cell_call_inside": """
from duograph import nn
class N(nn.Cell):
    calls = 0
    def __call__(self, x):
        self.calls += 1
        return nn.Cell.__call__(self, x) + self.calls
    def construct(self, x): return x * 3
class M(nn.Cell):
    def __init__(self):
        super().__init__()
        self.n = N()
    def construct(self, x): return self.n(x) + self.n.construct(x)
m = M()
def f(a): return m(a)
""",
    "constexpr": """
k = 2.0
@ops.constexpr
def c(n): return n * k
def f(a): return a * c(3)
def between():
    global k
    k += 1
""",
    "option_of_a_primitive": """
op = ops.ReduceSum(keep_dims=False)
def f(a): return op(a, 0) * 2
i = 0
def between():
    global i
    i += 1
    if i == 1: op.keep_dims = True
    if i == 2: op.add_prim_attr('keep_dims', False)
""",
    "option_of_a_gradient": """
g = ops.GradOperation()
def h(x, y): return (x * y).sum()
def f(a): return g(h)(a, a + 1)
i = 0
def between():
    global i
    i += 1
    if i == 1: g.get_all = True
    if i == 2: g.sens_param = False
""",
    "function_of_a_multitype": """
add = ops.MultitypeFuncGraph('add')
@add.register('Tensor')
def add_t(x): return x * k
k = 2.0
hm = ops.HyperMap()
def f(a): return hm(add, (a, a + 1))
i = 0
def between():
    global k, i
    i += 1
    if i == 1: k = 3.0
    if i == 2: add.register('Tensor')(lambda x: x - 1)
    if i == 3: add.register('Number')(lambda x: x - 2)
""",
}
