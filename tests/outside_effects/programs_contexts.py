"""Programs with `with`, generators, iterators and exceptions."""

PROGRAMS = {
    "nullcontext": """
import contextlib
def f(a):
    with contextlib.nullcontext(a * 2) as b:
        c = b + 1
    return c
""",
    "nullcontext_outside": """
import contextlib
ctx = contextlib.nullcontext()
def f(a):
    with ctx:
        return a * 2
""",
    "contextmanager": """
import contextlib
log = []
@contextlib.contextmanager
def ctx(x):
    log.append('in')
    yield x * 2
    log.append('out')
def f(a):
    with ctx(a) as b:
        log.append('body')
        c = b + 1
    return c
""",
    "contextmanager_finally": """
import contextlib
log = []
@contextlib.contextmanager
def ctx():
    log.append('in')
    try:
        yield
    finally:
        log.append('out')
def f(a):
    with ctx():
        if a.sum() < 0:
            raise ValueError('negative')
        return a * 2
""",
    "user_class": """
log = []
class Ctx:
    def __enter__(self):
        log.append('in')
        return self
    def __exit__(self, kind, error, trace):
        log.append(('out', kind and kind.__name__))
        return False
def f(a):
    with Ctx() as c:
        log.append(a.sum())
        b = a * 2
    return b
""",
    "user_class_raises": """
log = []
class Ctx:
    def __enter__(self):
        log.append('in')
    def __exit__(self, kind, error, trace):
        log.append(('out', kind and kind.__name__))
        return False
def f(a):
    with Ctx():
        if a.sum() < 0:
            raise ValueError('negative')
        b = a * 2
    return b
""",
    "user_class_suppresses": """
log = []
class Ctx:
    def __enter__(self):
        log.append('in')
    def __exit__(self, kind, error, trace):
        log.append(('out', kind and kind.__name__, str(error)))
        return True
def f(a):
    b = a
    with Ctx():
        raise ValueError('always')
        b = a * 2
    return b
""",
    "suppress_conditional": """
log = []
class Ctx:
    def __enter__(self):
        log.append('in')
    def __exit__(self, kind, error, trace):
        log.append(('out', kind and kind.__name__, str(error)))
        return True
def f(a):
    b = a
    with Ctx():
        if a.sum() < 0:
            raise ValueError('always')
        b = a * 2
    return b
""",
    "suppress": """
import contextlib
def f(a):
    with contextlib.suppress(ValueError):
        raise ValueError('x')
    with contextlib.suppress(KeyError):
        {}['q']
    return a * 2
""",
    "suppress_tensor_condition": """
import contextlib
def f(a):
    b = a
    with contextlib.suppress(ValueError):
        if a.sum() < 0:
            raise ValueError('x')
        b = a * 2
    return b
""",
    "suppress_other": """
import contextlib
def f(a):
    with contextlib.suppress(ValueError):
        raise KeyError('x')
    return a * 2
""",
    "lock": """
import threading
lock = threading.Lock()
def f(a):
    with lock:
        b = a * 2
        held = lock.locked()
    return b, held, lock.locked()
""",
    "rlock_raises": """
import threading
lock = threading.RLock()
def f(a):
    with lock:
        if a.sum() < 0:
            raise ValueError('negative')
        return a * 2
def between():
    t = threading.Thread(target=_try)
    t.start(); t.join()
ok = []
def _try():
    ok.append(lock.acquire(timeout=0.5))
    if ok[-1]:
        lock.release()
""",
    "lock_methods": """
import threading
lock = threading.Lock()
def f(a):
    lock.acquire()
    b = a * 2
    lock.release()
    return b
def between():
    assert not lock.locked()
""",
    "semaphore": """
import threading
sem = threading.Semaphore(10)
def f(a):
    sem.acquire()
    return a * 2
""",
    "redirect_stdout": """
import contextlib, io
out = io.StringIO()
def f(a):
    with contextlib.redirect_stdout(out):
        print('inside')
    print('outside')
    return a * 2
""",
    "errstate": """
import numpy as np
seen = []
def f(a):
    with np.errstate(divide='ignore'):
        seen.append(np.geterr()['divide'])
        b = a * 2
    seen.append(np.geterr()['divide'])
    return b
""",
    "catch_warnings": """
import warnings
def f(a):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        warnings.warn('hello')
    return a * 2
""",
    "exit_stack": """
import contextlib
log = []
class Ctx:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        log.append('in ' + self.name)
        return self
    def __exit__(self, *error):
        log.append('out ' + self.name)
def f(a):
    with contextlib.ExitStack() as stack:
        stack.enter_context(Ctx('x'))
        stack.enter_context(Ctx('y'))
        stack.callback(log.append, 'called')
        b = a * 2
    return b
""",
    "file": """
import tempfile as _t, os as _o
_path = '/tmp/dg_effects_file'
_o.path.exists(_path) and _o.remove(_path)
got = []
def f(a):
    with open(_path, 'a') as file:
        file.write('line ')
    return a * 2
def between():
    with open(_path) as file:
        got.append(file.read())
del _t, _o
""",
    "with_two": """
log = []
class Ctx:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        log.append('in ' + self.name)
        return self.name
    def __exit__(self, kind, *error):
        log.append('out ' + self.name + str(kind and kind.__name__))
def f(a):
    with Ctx('x') as x, Ctx('y') as y:
        log.append(x + y)
        if a.sum() < 0:
            return a * 3
        b = a * 2
    log.append('after')
    return b
""",
    "with_break": """
log = []
class Ctx:
    def __enter__(self):
        log.append('in')
    def __exit__(self, *error):
        log.append('out')
def f(a):
    for i in range(4):
        with Ctx():
            if i == 2:
                break
            if i == 0:
                continue
            a = a * 2
    return a
""",
    "with_break_tensor": """
log = []
class Ctx:
    def __enter__(self):
        log.append('in')
    def __exit__(self, *error):
        log.append('out')
def f(a):
    for i in range(4):
        with Ctx():
            if a.sum() > 20:
                break
            a = a * 2
    return a
""",
    "with_target_tensor": """
class Ctx:
    def __init__(self, x):
        self.x = x
    def __enter__(self):
        return self.x * 2
    def __exit__(self, *error):
        pass
def f(a):
    box = [0, 0]
    with Ctx(a) as box[1]:
        pass
    with Ctx((a, a)[0]) as (x, y, z):
        pass
    return box[1] + x * y + z
""",
    "class_with_slots": """
class Ctx:
    __slots__ = ('n',)
    def __init__(self):
        self.n = 0
    def __enter__(self):
        self.n += 1
        return self
    def __exit__(self, *error):
        self.n += 10
ctx = Ctx()
def f(a):
    with ctx:
        b = a * 2
    return b * ctx.n
""",
    "context_decorator": """
import contextlib
log = []
class Ctx(contextlib.ContextDecorator):
    def __enter__(self):
        log.append('in')
    def __exit__(self, *error):
        log.append('out')
@Ctx()
def h(q):
    log.append('body')
    return q * 2
def f(a):
    return h(a)
""",
    "closing": """
import contextlib
log = []
class Res:
    def close(self):
        log.append('closed')
def f(a):
    with contextlib.closing(Res()) as r:
        log.append('open')
        b = a * 2
    return b
""",
    "in_branch": """
log = []
class Ctx:
    def __enter__(self):
        log.append('in')
    def __exit__(self, *error):
        log.append('out')
def f(a):
    if a.sum() > 0:
        with Ctx():
            a = a * 2
    return a
""",
    "in_graph_loop": """
log = []
class Ctx:
    def __enter__(self):
        log.append('in')
    def __exit__(self, *error):
        log.append('out')
def f(a):
    while a.sum() < 100 and a.sum() > 0:
        with Ctx():
            a = a * 2
    return a
""",
    # ---- generators and iterators
    "count_outside": """
import itertools
it = itertools.count(1)
def f(a):
    return a * next(it)
""",
    "generator_outside": """
def gen():
    n = 1
    while True:
        yield n
        n += 1
it = gen()
def f(a):
    return a * next(it) + next(it)
""",
    "iterator_outside_for": """
import itertools
it = iter([1., 2., 3., 4., 5., 6., 7., 8.])
def f(a):
    for x in itertools.islice(it, 2):
        a = a * x
    return a
""",
    "iterator_exhausted": """
it = iter([1., 2.])
def f(a):
    return a * next(it, 0.)
""",
    "iterator_stop": """
it = iter([1., 2.])
def f(a):
    return a * next(it)
""",
    "for_over_outside_iterator": """
it = iter([1., 2.])
def f(a):
    for x in it:
        a = a * x
    return a
""",
    "list_of_outside_iterator": """
it = iter([1., 2.])
def f(a):
    return a * (len(list(it)) + 1)
""",
    "sum_of_outside_generator": """
it = (x for x in (1., 2., 3.))
def f(a):
    return a * (sum(it) + 1)
""",
    "generator_function": """
def gen(n):
    for i in range(n):
        yield i + 1.
def f(a):
    for x in gen(3):
        a = a * x
    return a
""",
    "generator_function_tensor": """
def gen(q, n):
    for i in range(n):
        yield q * (i + 1)
def f(a):
    total = a
    for x in gen(a, 3):
        total = total + x
    return total
""",
    "generator_with_effects": """
log = []
def gen(q, n):
    for i in range(n):
        log.append(('made', i))
        yield q * (i + 1)
    log.append('end')
def f(a):
    total = a
    for x in gen(a, 3):
        log.append('used')
        total = total + x
    return total
""",
    "generator_partially_used": """
log = []
def gen(q):
    log.append(1)
    yield q
    log.append(2)
    yield q * 2
    log.append(3)
def f(a):
    g = gen(a)
    x = next(g)
    y = next(g)
    return x + y
""",
    "yield_from": """
def inner(q):
    yield q
    yield q * 2
    return 3.
def gen(q):
    w = yield from inner(q)
    yield q * w
def f(a):
    return sum(gen(a))
""",
    "generator_send": """
def gen():
    total = 0.
    while True:
        x = yield total
        total += x
def f(a):
    g = gen()
    next(g)
    return a * g.send(2.) + g.send(3.)
""",
    "generator_local": """
def f(a):
    def gen():
        yield a
        yield a * 2
    x, y = gen()
    return x + y
""",
    "generator_expression": """
def f(a):
    g = (a * i for i in range(4))
    x = next(g)
    y = next(g)
    return x + y
""",
    "generator_expression_lazy": """
log = []
def note(x):
    log.append(x)
    return x
def f(a):
    g = (note(i) for i in range(4))
    log.append('before')
    x = next(g)
    log.append('between')
    y = next(g)
    return a * (x + y)
""",
    "generator_expression_any": """
log = []
def note(x):
    log.append(x)
    return x > 1
def f(a):
    if any(note(i) for i in range(4)):
        return a * 2
    return a
""",
    "map_lazy": """
log = []
def note(x):
    log.append(x)
    return x
def f(a):
    m = map(note, [1, 2, 3])
    log.append('before')
    return a * next(m)
""",
    "filter_lazy": """
log = []
def note(x):
    log.append(x)
    return x > 1
def f(a):
    m = filter(note, [1, 2, 3])
    log.append('before')
    return a * next(m)
""",
    "zip_lazy": """
log = []
def note(x):
    log.append(x)
    return x
def f(a):
    for x, y in zip(map(note, [1, 2, 3]), (5., 6.)):
        log.append('body')
        a = a * x * y
    return a
""",
    "enumerate_changed_list": """
def f(a):
    xs = [1., 2., 3.]
    for i, x in enumerate(xs):
        if i == 0:
            xs.append(5.)
        a = a * x
    return a
""",
    "reversed_outside": """
xs = [1., 2., 3.]
def f(a):
    for i, x in enumerate(reversed(xs)):
        a = a * x + i
    return a
def between():
    xs.append(4.)
""",
    "iter_sentinel": """
xs = [3., 2., 1., 0., 5., 4., 0., 7.]
def f(a):
    for x in iter(lambda: xs.pop(0) if xs else 0., 0.):
        a = a * x
    return a
""",
    "iter_inside": """
def f(a):
    it = iter([1., 2., 3.])
    first = next(it)
    for x in it:
        a = a * x
    return a * first
""",
    "iter_tensor_rows": """
def f(a):
    it = iter(a)
    first = next(it)
    for x in it:
        first = first + x * 2
    return first
""",
    "user_iterator": """
class It:
    def __init__(self):
        self.n = 0
    def __iter__(self):
        return self
    def __next__(self):
        self.n += 1
        if self.n > 30:
            raise StopIteration
        return self.n
it = It()
def f(a):
    return a * next(it)
""",
    "user_iterator_for": """
class It:
    def __init__(self):
        self.n = 0
    def __iter__(self):
        return self
    def __next__(self):
        self.n += 1
        if self.n % 3 == 0:
            raise StopIteration
        return self.n
it = It()
def f(a):
    for x in it:
        a = a * x
    return a
""",
    "itertools_inside": """
import itertools
def f(a):
    c = itertools.count(2)
    for x, y in zip(itertools.chain([1., 2.], (3.,)), c):
        a = a * x + y
    for x, y in itertools.product([1., 2.], repeat=2):
        a = a + x * y
    return a
""",
    "cycle_outside": """
import itertools
it = itertools.cycle([1., 2., 3.])
def f(a):
    return a * next(it)
""",
    "zip_outside": """
it = zip([1., 2., 3., 4.], [5., 6., 7., 8.])
def f(a):
    x, y = next(it)
    return a * x * y
""",
    "iterator_in_branch": """
import itertools
it = itertools.count(1)
def f(a):
    if a.sum() > 0:
        return a * next(it)
    return a
""",
    "deque_outside": """
import collections
d = collections.deque([1., 2., 3., 4., 5., 6.])
def f(a):
    d.append(7.)
    return a * d.popleft()
""",
    "deque_of_tensors": """
import collections
d = collections.deque(maxlen=3)
def f(a):
    d.append(a * 2)
    return a
""",
    "defaultdict_of_lists": """
import collections
cache = collections.defaultdict(list)
def f(a):
    cache['k'].append(a)
    return a * 2
""",
    "counter": """
import collections
c = collections.Counter()
def f(a):
    c['calls'] += 1
    c.update('ab')
    return a * c['calls']
""",
    "ordered_dict": """
import collections
d = collections.OrderedDict(x=1., y=2.)
def f(a):
    d.move_to_end('x')
    return a * d[next(iter(d))]
""",
}
