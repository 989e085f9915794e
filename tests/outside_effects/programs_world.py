"""Programs that read and change the world: clocks, random numbers, files, objects from outside."""

PROGRAMS = {
    "random_module": """
import random
random.seed(3)
def f(a):
    return a * random.random() + random.randint(1, 9)
""",
    "random_object": """
import random
r = random.Random(3)
def f(a):
    return a * r.random()
""",
    "random_shuffle": """
import random
random.seed(3)
xs = [1., 2., 3., 4.]
def f(a):
    random.shuffle(xs)
    return a * xs[0]
""",
    "random_choice": """
import random
random.seed(3)
def f(a):
    return a * random.choice([1., 2., 3., 4., 5.])
""",
    "np_random": """
np.random.seed(3)
def f(a):
    return a * np.random.rand()
""",
    "np_random_array": """
np.random.seed(3)
def f(a):
    return a * Tensor(np.random.rand(3).astype(np.float32))
""",
    "np_generator": """
g = np.random.default_rng(3)
def f(a):
    return a * g.random()
""",
    "np_generator_normal": """
g = np.random.default_rng(3)
def f(a):
    return a * float(g.normal(size=3)[0])
""",
    "np_generator_inside": """
def f(a):
    g = np.random.default_rng(3)
    return a * float(g.normal()) + float(g.normal())
""",
    "np_random_state": """
g = np.random.RandomState(3)
def f(a):
    return a * float(g.rand())
""",
    "np_seed_inside": """
def f(a):
    np.random.seed(4)
    return a * np.random.rand()
""",
    "time": """
import time
last = 0.
def f(a):
    t = time.perf_counter()
    return a, t
def between():
    pass
_f = f
times = []
def f(a):
    b, t = _f(a)
    times.append(t > 0)
    return b
""",
    "time_differs": """
import time
marks = []
def f(a):
    marks.append(time.perf_counter())
    return a * 2
def between():
    global increasing
    increasing = sorted(set(marks)) == marks
    if len(marks) == 4:
        marks.clear()
""",
    "datetime_now": """
import datetime
marks = []
def f(a):
    marks.append(datetime.datetime.now())
    return a * 2
def between():
    global different
    different = len(set(marks)) == len(marks)
    if len(marks) == 4:
        marks.clear()
""",
    "datetime_today_class": """
from datetime import datetime, timezone
marks = []
def f(a):
    now = datetime.now(timezone.utc)
    marks.append(now.isoformat())
    return a * 2
def between():
    global different
    different = len(set(marks)) == len(marks)
    if len(marks) == 4:
        marks.clear()
""",
    "datetime_constant": """
import datetime
def f(a):
    d = datetime.date(2020, 1, 2) + datetime.timedelta(days=3)
    return a * d.day
""",
    "uuid": """
import uuid
marks = []
def f(a):
    marks.append(str(uuid.uuid4()))
    return a * 2
def between():
    global different
    different = len(set(marks)) == len(marks)
    if len(marks) == 4:
        marks.clear()
""",
    "environ_get": """
import os
os.environ['DG_TEST_X'] = '2'
def f(a):
    return a * float(os.environ['DG_TEST_X'])
def between():
    os.environ['DG_TEST_X'] = str(float(os.environ['DG_TEST_X']) + 1)
""",
    "environ_getenv": """
import os
os.environ['DG_TEST_X'] = '2'
def f(a):
    return a * float(os.getenv('DG_TEST_X', '1'))
def between():
    os.environ['DG_TEST_X'] = str(float(os.environ['DG_TEST_X']) + 1)
""",
    "environ_set": """
import os
def f(a):
    os.environ['DG_TEST_Y'] = 'set'
    return a * 2
def between():
    assert os.environ.pop('DG_TEST_Y') == 'set'
""",
    "environ_in": """
import os
os.environ.pop('DG_TEST_Z', None)
def f(a):
    return a * (3 if 'DG_TEST_Z' in os.environ else 2)
def between():
    if 'DG_TEST_Z' in os.environ:
        del os.environ['DG_TEST_Z']
    else:
        os.environ['DG_TEST_Z'] = '1'
""",
    "sys_argv": """
import sys
n = len(sys.argv)
def f(a):
    return a * (len(sys.argv) - n + 1)
def between():
    sys.argv.append('x')
    if len(sys.argv) == n + 4:
        del sys.argv[n:]
""",
    "sys_modules": """
import sys
def f(a):
    return a * (2 if 'math' in sys.modules else 3)
""",
    "sys_stdout_write": """
import sys
def f(a):
    sys.stdout.write('hello')
    sys.stdout.flush()
    return a * 2
""",
    "logging": """
import logging
class Handler(logging.Handler):
    def emit(self, record):
        records.append(record.getMessage())
records = []
log = logging.getLogger('dg_effects_test')
log.handlers = [Handler()]
log.propagate = False
log.setLevel(logging.INFO)
def f(a):
    log.info('hello %s', 3)
    log.debug('not this')
    log.warning('sum %.1f', a.sum().item())
    return a * 2
""",
    "logging_tensor": """
import logging
class Handler(logging.Handler):
    def emit(self, record):
        records.append(record.getMessage())
records = []
log = logging.getLogger('dg_effects_test2')
log.handlers = [Handler()]
log.propagate = False
log.setLevel(logging.INFO)
def f(a):
    log.info('tensor %s', a)
    log.info(f'tensor {a.sum()}')
    return a * 2
""",
    "print_file": """
import io
out = io.StringIO()
def f(a):
    print('hello', file=out)
    print('x', 'y', sep='-', end='!', file=out)
    return a * 2
""",
    "warnings_warn": """
import warnings
def f(a):
    with warnings.catch_warnings(record=True) as got:
        pass
    warnings.warn('hello', UserWarning)
    return a * 2
""",
    "queue": """
import queue
_q = queue.Queue()
for i in range(10):
    _q.put(i)
sizes = []
def f(a):
    _q.put(5)
    return a * _q.get_nowait()
def between():
    sizes.append(_q.qsize())
""",
    "queue_of_tensors": """
import queue
_q = queue.Queue()
got = []
def f(a):
    _q.put(a * 2)
    return a
def between():
    got.append(_q.get_nowait())
""",
    "thread_local": """
import threading
_l = threading.local()
_l.n = 1
seen = []
def f(a):
    _l.n += 1
    return a * _l.n
def between():
    seen.append(_l.n)
""",
    "contextvar": """
import contextvars
var = contextvars.ContextVar('var', default=1.)
def f(a):
    return a * var.get()
def between():
    var.set(var.get() + 1)
""",
    "contextvar_set": """
import contextvars
var = contextvars.ContextVar('var', default=1.)
seen = []
def f(a):
    var.set(var.get() + 1)
    return a * var.get()
def between():
    seen.append(var.get())
""",
    "contextvar_reset": """
import contextvars
var = contextvars.ContextVar('var', default=1.)
seen = []
def f(a):
    token = var.set(5.)
    b = a * var.get()
    var.reset(token)
    return b + var.get()
def between():
    seen.append(var.get())
""",
    "globals_call": """
n = 1.
def f(a):
    g = globals()
    g['n'] = g['n'] + 1
    return a * n
""",
    "locals_call": """
def f(a):
    b = a * 2
    return locals()['b'] + 1
""",
    "vars_of_object": """
class C:
    pass
c = C()
c.x = 2.
def f(a):
    d = vars(c)
    d['y'] = 3.
    return a * d['x']
def between():
    c.x += 1
""",
    "dict_of_object": """
class C:
    pass
c = C()
c.x = 2.
def f(a):
    c.__dict__['y'] = a
    return a * c.__dict__['x']
def between():
    c.x += 1
""",
    "setattr_getattr": """
class C:
    x = 1.
c = C()
def f(a):
    setattr(c, 'x', getattr(c, 'x') + 1)
    setattr(c, 'last', a)
    return a * c.x
""",
    "delattr": """
class C:
    pass
c = C()
c.x = 2.
def f(a):
    b = a * c.x
    delattr(c, 'x')
    return b
def between():
    assert not hasattr(c, 'x')
    c.x = 3.
""",
    "del_attribute": """
class C:
    pass
c = C()
c.x = 2.
def f(a):
    b = a * c.x
    del c.x
    return b
def between():
    assert not hasattr(c, 'x')
    c.x = 3.
""",
    "del_attribute_missing": """
class C:
    pass
c = C()
c.x = 2.
def f(a):
    del c.x
    return a * 2
""",
    "del_then_set": """
class C:
    pass
c = C()
c.x = 2.
def f(a):
    del c.x
    had = hasattr(c, 'x')
    c.x = 5.
    return a * c.x, had
""",
    "del_self": """
class C:
    def __init__(self):
        self.x = 2.
    def run(self, a):
        b = a * self.x
        del self.x
        return b
c = C()
def f(a):
    return c.run(a)
def between():
    c.__init__()
""",
    "del_item": """
d = {'x': 2., 'y': 3.}
xs = [1., 2., 3., 4., 5., 6., 7., 8., 9.]
def f(a):
    b = a * d['x'] * xs[0]
    del d['x']
    del xs[0]
    return b
def between():
    d['x'] = 4.
""",
    "del_item_missing": """
d = {'x': 2.}
def f(a):
    del d['x']
    return a
""",
    "del_global": """
n = 2.
def f(a):
    global n
    b = a * n
    del n
    return b
def between():
    global n
    n = 3.
""",
    "slots_object": """
class C:
    __slots__ = ('x', 'last')
    def __init__(self):
        self.x = 1.
c = C()
def f(a):
    c.x += 1
    c.last = a * 2
    return a * c.x
""",
    "property_setter": """
class C:
    def __init__(self):
        self._x = 1.
        self.log = []
    @property
    def x(self):
        self.log.append('get')
        return self._x
    @x.setter
    def x(self, v):
        self.log.append('set')
        self._x = v
c = C()
def f(a):
    c.x = c.x + 1
    return a * c.x
""",
    "descriptor": """
class D:
    def __get__(self, obj, owner=None):
        obj.log.append('get')
        return obj.__dict__['_v']
    def __set__(self, obj, v):
        obj.log.append('set')
        obj.__dict__['_v'] = v
class C:
    v = D()
    def __init__(self):
        self.log = []
        self.v = 1.
c = C()
def f(a):
    c.v = c.v + 1
    return a * c.v
""",
    "getattr_method": """
class C:
    def __init__(self):
        self.__dict__['log'] = []
    def __getattr__(self, name):
        self.log.append(name)
        return 3.
    def __setattr__(self, name, value):
        self.log.append(('set', name))
c = C()
def f(a):
    c.y = 4.
    return a * c.x
""",
    "class_attribute": """
class C:
    n = 1.
def f(a):
    C.n += 1
    return a * C.n
""",
    "class_registry": """
class C:
    made = []
    def __init__(self, x):
        self.x = x
        C.made.append(x)
def f(a):
    c = C(a * 2)
    return c.x
""",
    "class_new": """
log = []
class C:
    def __new__(cls, x):
        log.append('new')
        return super().__new__(cls)
    def __init__(self, x):
        log.append('init')
        self.x = x
def f(a):
    return C(a * 2).x
""",
    "dataclass_outside": """
import dataclasses
@dataclasses.dataclass
class P:
    x: float
    hist: list = dataclasses.field(default_factory=list)
p = P(1.)
def f(a):
    p.x += 1
    p.hist.append(a)
    q = P(2.)
    q.hist.append(a)
    return a * p.x * q.x
""",
    "dataclass_post_init": """
import dataclasses
log = []
@dataclasses.dataclass
class P:
    x: object
    def __post_init__(self):
        log.append('made')
        self.y = self.x * 2
def f(a):
    return P(a).y
""",
    "namedtuple": """
import collections
P = collections.namedtuple('P', 'x y')
p = P(1., [2.])
def f(a):
    p.y.append(a)
    q = p._replace(x=3.)
    return a * q.x
""",
    "enum": """
import enum
class E(enum.Enum):
    A = 2.
    B = 3.
def f(a):
    return a * E.A.value * E(3.).value * E['A'].value
""",
    "simple_namespace": """
import types
ns = types.SimpleNamespace(n=1., kept=[])
def f(a):
    ns.n += 1
    ns.kept.append(a)
    return a * ns.n
""",
    "exec_eval": """
n = 2.
def f(a):
    return a * eval('n + 1')
""",
    "exec_statement": """
box = {}
def f(a):
    exec('box["x"] = box.get("x", 0) + 1')
    return a * box['x']
""",
    "hash_and_id": """
class C:
    def __hash__(self):
        log.append('hash')
        return 7
log = []
c = C()
def f(a):
    return a * hash(c) * (1. if id(c) == id(c) else 2.)
""",
    "gc": """
import gc
class C:
    pass
def f(a):
    gc.collect()
    return a * 2
""",
    "weakref": """
import weakref
class C:
    w = 2.
c = C()
r = weakref.ref(c)
def f(a):
    o = r()
    if o is None:
        return a
    return a * o.w
n = 0
def between():
    global c, n
    n += 1
    if n == 2:
        c = None
_r = r
r = None
def f(a):
    o = _r()
    if o is None:
        return a
    return a * o.w
""",
    "weak_dict": """
import weakref
class C:
    w = 2.
_keys = [C(), C()]
_d = weakref.WeakKeyDictionary({k: i for i, k in enumerate(_keys)})
def f(a):
    return a * len(_d)
def between():
    if _keys:
        _keys.pop()
""",
    "bytearray": """
buf = bytearray(b'abc')
def f(a):
    buf.append(65)
    buf[0] = 66
    return a * len(buf)
""",
    "array_array": """
import array
buf = array.array('d', [1., 2.])
def f(a):
    buf.append(3.)
    buf[0] += 1
    return a * buf[0] * len(buf)
""",
    "memoryview": """
_buf = bytearray(b'abc')
view = memoryview(_buf)
seen = []
def f(a):
    view[0] = view[0] + 1
    return a * view[0]
def between():
    seen.append(bytes(_buf))
_view = view
view = None
def f(a):
    _view[0] = _view[0] + 1
    return a * _view[0]
""",
    "numpy_write": """
arr = np.zeros(3)
def f(a):
    arr[0] += 1
    return a * float(arr[0])
""",
    "numpy_write_tensor": """
arr = np.zeros(3, np.float32)
def f(a):
    arr[:] = a.asnumpy()
    return a * 2
""",
    "numpy_methods": """
arr = np.array([3., 1., 2.])
def f(a):
    arr.sort()
    arr.fill(float(arr[0]) + 1)
    return a * float(arr[1])
""",
    "numpy_out": """
arr = np.zeros(3)
one = np.ones(3)
def f(a):
    np.add(arr, one, out=arr)
    return a * float(arr[0])
""",
    "numpy_iadd": """
arr = np.zeros(3)
def f(a):
    global arr
    arr += 1
    return a * float(arr[0])
""",
    "numpy_copyto": """
arr = np.zeros(3)
def f(a):
    np.copyto(arr, arr + 1)
    return a * float(arr[0])
""",
    "list_subclass": """
class L(list):
    def append(self, x):
        log.append('append')
        super().append(x)
log = []
xs = L()
def f(a):
    xs.append(a)
    return a * len(xs)
""",
    "dict_subclass": """
class D(dict):
    def __setitem__(self, k, v):
        log.append(k)
        super().__setitem__(k, v)
    def __missing__(self, k):
        log.append(('missing', k))
        return 2.
log = []
d = D()
def f(a):
    d['x'] = a
    return a * d['y']
""",
    "set_subclass": """
class S(set):
    pass
s = S()
def f(a):
    s.add(len(s))
    return a * len(s)
""",
    "user_dict": """
import collections
d = collections.UserDict()
def f(a):
    d['n'] = d.get('n', 0) + 1
    d['last'] = a
    return a * d['n']
""",
    "chain_map": """
import collections
base = {'x': 1.}
top = {}
m = collections.ChainMap(top, base)
def f(a):
    m['y'] = m.get('y', 0.) + 1.
    return a * m['x'] * m['y']
""",
    "heap": """
import heapq
h = [5., 3., 4., 2., 1., 7., 6., 8.]
heapq.heapify(h)
def f(a):
    heapq.heappush(h, 2.5)
    return a * heapq.heappop(h)
""",
    "bisect": """
import bisect
xs = [1., 5., 9.]
def f(a):
    bisect.insort(xs, 3.)
    return a * bisect.bisect(xs, 4.)
""",
    "operator_setitem": """
import operator
d = {'n': 1.}
xs = [1.]
def f(a):
    operator.setitem(d, 'n', d['n'] + 1)
    operator.iadd(xs, [2.])
    operator.setitem(xs, 0, a)
    return a * d['n'] * len(xs)
""",
    "reduce_with_effect": """
import functools
log = []
def add(x, y):
    log.append((x, y))
    return x + y
def f(a):
    return a * functools.reduce(add, [1., 2., 3.])
""",
    "sort_key_with_effect": """
log = []
def key(x):
    log.append(x)
    return -x
def f(a):
    xs = sorted([1., 3., 2.], key=key)
    ys = [3., 1.]
    ys.sort(key=key)
    return a * xs[0] * max([1., 5.], key=key) * ys[0]
""",
    "method_as_callback": """
log = []
def f(a):
    list(map(log.append, [1, 2]))
    for x in (3, 4):
        log.append(x)
    add = log.append
    add(a)
    return a * len(log)
""",
    "list_of_tensors": """
xs = []
def f(a):
    xs.append(a)
    xs.append(a * 2)
    return xs[-1] + xs[0]
""",
    "list_slices": """
xs = [1., 2., 3., 4.]
def f(a):
    xs[1:3] = [a, a, a]
    xs.insert(0, 9.)
    xs.reverse()
    return a * len(xs)
""",
    "list_in_place_operators": """
xs = [1.]
d = {}
alias = xs
def f(a):
    global xs
    xs += [a]
    xs *= 2
    d['x'] = xs
    return a * len(xs)
def between():
    assert xs is alias
""",
    "nested_containers": """
d = {'xs': [], 'n': {'k': 0.}}
def f(a):
    d['xs'].append((a, [a * 2]))
    d['n']['k'] += 1
    return a * d['n']['k']
""",
    "pickle_copy": """
import copy
src = {'x': [1., 2.]}
def f(a):
    c = copy.deepcopy(src)
    c['x'].append(3.)
    s = copy.copy(src['x'])
    s.append(9.)
    return a * len(c['x']) * len(s)
def between():
    src['x'].append(0.)
""",
    "json": """
import json
src = {'x': 1.}
def f(a):
    return a * json.loads(json.dumps(src))['x']
def between():
    src['x'] += 1
""",
    "re": """
import re
def f(a):
    m = re.match(r'(\\d+)x', '12x')
    return a * float(m.group(1))
""",
    "math_and_str": """
import math
name = 'ab'
def f(a):
    return a * math.sqrt(4.) * len(name.upper()) * float('2.5')
""",
    "decimal_context": """
import decimal
def f(a):
    with decimal.localcontext() as ctx:
        ctx.prec = 2
        x = float(decimal.Decimal(1) / decimal.Decimal(3))
    return a * x
""",
    "input": """
import io, sys
_old = sys.stdin
sys.stdin = io.StringIO('1\\n2\\n3\\n4\\n')
def f(a):
    return a * float(input())
def between():
    global _n
    _n = globals().get('_n', 0) + 1
    if _n == 4:
        sys.stdin = _old
del io
""",
    "subprocess": """
import subprocess
def f(a):
    out = subprocess.run(['true'])
    return a * (out.returncode + 1)
""",
    "threads": """
import threading
log = []
def f(a):
    t = threading.Thread(target=log.append, args=(1,))
    t.start()
    t.join()
    return a * len(log)
""",
    "host_method_in_user_class": """
class Meter:
    def __init__(self):
        self.total = 0.
        self.n = 0
    def update(self, x):
        self.total += x
        self.n += 1
    @property
    def mean(self):
        return self.total / max(self.n, 1)
m = Meter()
def f(a):
    m.update(a.sum())
    return a * 2
""",
    "meter_item": """
class Meter:
    def __init__(self):
        self.total = 0.
    def update(self, x):
        self.total += x
m = Meter()
def f(a):
    m.update(a.sum().item())
    return a * m.total
""",
    "tensor_identity_kept": """
kept = []
def f(a):
    b = a * 2
    kept.append(b)
    kept.append(b)
    return b
def between():
    assert kept[-1] is kept[-2]
""",
    "argument_identity_kept": """
kept = []
def f(a):
    kept.append(a)
    return a * 2
""",
    "foreign_c_method": """
import io
buf = io.BytesIO()
def f(a):
    buf.write(b'ab')
    return a * buf.tell()
""",
    "csv_writer": """
import csv, io
out = io.StringIO()
_w = csv.writer(out)
def f(a):
    _w.writerow([1, 2, float(a.sum())])
    return a * 2
""",
    "sqlite": """
import sqlite3
_db = sqlite3.connect(':memory:', check_same_thread=False)
_db.execute('create table t (x real)')
seen = []
def f(a):
    _db.execute('insert into t values (?)', (float(a.sum()),))
    return a * 2
def between():
    seen.append(_db.execute('select x from t').fetchall())
""",
    "struct_pack_into": """
import struct
buf = bytearray(8)
def f(a):
    struct.pack_into('d', buf, 0, struct.unpack_from('d', buf)[0] + 1)
    return a * struct.unpack_from('d', buf)[0]
""",
    "zip_of_outside_lists": """
xs, ys = [1., 2.], [3., 4.]
def f(a):
    for x, y in zip(xs, ys):
        a = a * x + y
    return a
def between():
    xs.append(5.); ys.append(6.)
""",
    "statistics": """
import statistics
xs = [1., 2., 3.]
def f(a):
    return a * statistics.mean(xs)
def between():
    xs.append(10.)
""",
    "import_inside": """
def f(a):
    import math as m
    from collections import deque
    return a * m.floor(2.5) * len(deque([1, 2]))
""",
    "frame": """
import sys
frames = []
def trace():
    frames.append(sys._getframe(0).f_code.co_name)
def f(a):
    trace()
    return a * 2
""",
    "breakpoint": """
import sys
hits = []
def _hook(*args, **kwargs):
    hits.append(sys._getframe(1).f_code.co_name)
def f(a):
    old = sys.breakpointhook
    sys.breakpointhook = _hook
    breakpoint()
    sys.breakpointhook = old
    return a * 2
""",
}
