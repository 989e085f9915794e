"""Programs that raise, print and format, and effects under conditions, in loops and gradients."""

PROGRAMS = {
    "raise_keywords": """
class K(Exception):
    def __init__(self, x, k=0):
        super().__init__(x)
        self.k = k
def f(a):
    if a.sum() < 0:
        raise K(1, k=5)
    return a
""",
    "raise_keywords_tensor": """
class K(Exception):
    def __init__(self, x, k=0):
        super().__init__(x)
        self.k = k
def f(a):
    if a.sum() < 0:
        raise K(a.sum(), k=a)
    return a
""",
    "raise_star": """
args = (1, 'two')
def f(a):
    if a.sum() < 0:
        raise ValueError(*args)
    return a
""",
    "raise_double_star": """
class K(Exception):
    def __init__(self, x, k=0):
        super().__init__(x)
        self.k = k
kw = {'k': 3}
def f(a):
    if a.sum() < 0:
        raise K('x', **kw)
    return a
""",
    "raise_from": """
def f(a):
    if a.sum() < 0:
        raise ValueError('outer') from KeyError('inner')
    return a
""",
    "raise_from_none": """
def f(a):
    if a.sum() < 0:
        raise ValueError('outer') from None
    return a
""",
    "raise_always_from": """
def f(a):
    raise ValueError('outer') from KeyError('inner')
""",
    "raise_in_handler": """
def f(a):
    try:
        {}['x']
    except KeyError as e:
        raise ValueError('outer') from e
""",
    "raise_instance": """
error = ValueError('kept')
def f(a):
    if a.sum() < 0:
        raise error
    return a
""",
    "raise_class": """
def f(a):
    if a.sum() < 0:
        raise NotImplementedError
    return a
""",
    "raise_made_before": """
class K(Exception):
    pass
def f(a):
    e = K('made', 1)
    e.extra = 5
    if a.sum() < 0:
        raise e
    return a
""",
    "raise_made_before_tensor": """
def f(a):
    e = ValueError('sum', a.sum())
    if a.sum() < 0:
        raise e
    return a
""",
    "raise_text": """
def f(a):
    if a.sum() < 0:
        raise ValueError(f'got {a.shape} {a.sum()} {a!r}')
    return a
""",
    "raise_percent": """
def f(a):
    if a.sum() < 0:
        raise ValueError('got %s and %d' % (a.shape, 3))
    return a
""",
    "raise_in_init": """
class K(Exception):
    def __init__(self, x):
        made.append(x)
        super().__init__('K', x)
made = []
def f(a):
    if a.sum() < 0:
        raise K(2)
    return a
""",
    "raise_factory": """
def error(x):
    return ValueError('made by a function', x)
def f(a):
    if a.sum() < 0:
        raise error(1)
    return a
""",
    "assert_message": """
def f(a):
    assert a.sum() > 0, 'negative'
    return a
""",
    "assert_message_tensor": """
def f(a):
    assert a.sum() > 0, f'got {a.sum()}'
    return a
""",
    "assert_tuple_message": """
def f(a):
    assert a.sum() > 0, ('got', 3)
    return a
""",
    "effects_before_raise": """
log = []
def f(a):
    log.append('one')
    if a.sum() < 0:
        log.append('two')
        raise ValueError('x')
    log.append('three')
    return a
""",
    "effects_before_raise_always": """
log = []
def f(a):
    log.append(a)
    raise ValueError('x')
""",
    "host_error_half_way": """
log = []
def boom(x):
    log.append('boom')
    raise KeyError(x)
def f(a):
    log.append('before')
    if a.sum() < 0:
        boom('q')
    log.append('after')
    return a
""",
    "parameter_unchanged_on_error": """
p = ms.Parameter(Tensor([1., 1., 1.]), name='p')
log = []
def f(a):
    p.set_data(p + a)
    log.append(1)
    if a.sum() < 0:
        raise ValueError('x')
    return p * 2
""",
    "try_except_host": """
log = []
def f(a):
    try:
        log.append('try')
        x = float('no')
    except ValueError as e:
        log.append(str(e))
        x = 2.
    finally:
        log.append('finally')
    return a * x
""",
    "try_tensor_error": """
log = []
def f(a):
    try:
        if a.sum() < 0:
            raise ValueError('neg')
        x = 1.
    except ValueError as e:
        log.append(str(e))
        x = 2.
    finally:
        log.append('finally')
    return a * x
""",
    "try_finally_tensor": """
log = []
def f(a):
    try:
        if a.sum() < 0:
            raise ValueError('neg')
        return a * 2
    finally:
        log.append('finally')
""",
    # ---- text
    "percent_tuple": """
out = []
def f(a):
    out.append('%s' % (a,))
    out.append('%s %d' % (a.shape, 2))
    out.append('%r' % [a])
    return a
""",
    "percent_scalar": """
out = []
def f(a):
    out.append('%.2f' % a.sum().item())
    out.append('%s' % a.sum())
    out.append('%(x)s' % {'x': a})
    return a
""",
    "format_method": """
out = []
def f(a):
    out.append('{}'.format(a))
    out.append('{0!r} {x}'.format(a, x=a.sum()))
    out.append('{:.2f}'.format(a.sum().item()))
    out.append('{0[0]}'.format([a]))
    out.append('{x.shape}'.format(x=a))
    return a
""",
    "format_map": """
out = []
def f(a):
    out.append('{x}'.format_map({'x': a}))
    return a
""",
    "f_strings": """
out = []
def f(a):
    out.append(f'{a}')
    out.append(f'{a!r} {a.sum()!s}')
    out.append(f'{[a, 1]} {(a,)} {dict(x=a)}')
    out.append(f'{a.sum().item():.3f}')
    out.append(f'{a.shape} {a.dtype}')
    return a
""",
    "f_string_nested": """
out = []
def f(a):
    w = 10
    out.append(f'{a.sum().item():{w}.2f}')
    out.append(f'{a.shape!r:>{w}}')
    return a
""",
    "str_of_containers": """
out = []
def f(a):
    out.append(str([a, (a.sum(), 1)]))
    out.append(repr({'x': a}))
    out.append(str(a))
    return a
""",
    "str_join": """
out = []
def f(a):
    out.append(', '.join([str(a.sum()), 'x']))
    out.append(', '.join(map(str, [a.sum(), 1])))
    out.append('x' + str(a.sum()))
    out.append('x: ' + repr(a))
    return a
""",
    "str_of_object": """
class C:
    def __init__(self, x):
        self.x = x
    def __repr__(self):
        return f'C({self.x})'
    def __str__(self):
        return 'c' + str(self.x)
out = []
def f(a):
    c = C(a)
    out.append(str(c))
    out.append(repr(c))
    out.append(f'{c} {c!r}')
    out.append('{} {!r}'.format(c, c))
    out.append('%s %r' % (c, c))
    out.append(str([c]))
    return a
""",
    "str_of_dataclass": """
import dataclasses
@dataclasses.dataclass
class P:
    x: object
out = []
def f(a):
    out.append(str(P(a)))
    out.append(f'{P(a.sum())}')
    return a
""",
    "str_of_namedtuple": """
import collections
P = collections.namedtuple('P', 'x y')
out = []
def f(a):
    out.append(str(P(a, 1)))
    out.append(f'{P(a.sum(), 2)!r}')
    return a
""",
    "str_of_numbers": """
out = []
def f(a):
    n = a.sum().item()
    out.append(str(n))
    out.append(f'{n}')
    out.append('{}'.format(n))
    out.append('%s' % n)
    out.append(repr([n, n > 0]))
    m = int(a.sum())
    out.append(f'{m:03d}')
    return a
""",
    "str_methods_on_text": """
out = []
def f(a):
    s = str(a.sum().item())
    out.append(s.upper().center(20))
    out.append('<' + s + '>')
    out.append(s[0])
    out.append(len(s))
    return a
""",
    "str_of_function": """
out = []
def h(q):
    return q
def f(a):
    out.append(h.__name__ + h.__qualname__ + f.__name__)
    g = lambda x: x
    out.append(g.__name__)
    return a
""",
    "str_of_set_and_deque": """
import collections
out = []
def f(a):
    out.append(str(collections.deque([a])))
    out.append(str(collections.OrderedDict(x=a)))
    out.append(str(collections.defaultdict(list, x=[a])))
    return a
""",
    "type_names": """
out = []
def f(a):
    out.append(type(a).__name__)
    out.append(str(type(a.sum().item())))
    out.append(f'{type(a)}')
    out.append(a.__class__.__name__)
    out.append(isinstance(a, Tensor))
    return a
""",
    "pprint": """
import pprint, io
out = io.StringIO()
def f(a):
    pprint.pprint({'x': a, 'y': [a.sum()]}, stream=out)
    return a
""",
    "json_tensor": """
import json
out = []
def f(a):
    out.append(json.dumps({'x': a.tolist(), 'y': a.sum().item()}))
    return a
""",
    "string_template": """
import string
out = []
def f(a):
    out.append(string.Template('$x').substitute(x=a))
    return a
""",
    "error_text_of_wrong_use": """
def f(a):
    return a.no_such_method()
""",
    "error_text_of_wrong_operator": """
def f(a):
    return a.sum().item() + 'x'
""",
    "error_text_of_wrong_index": """
def f(a):
    return {'x': 1}[a.sum().item()]
""",
    "error_text_call_number": """
def f(a):
    return a.sum().item()(3)
""",
    "error_text_len_number": """
def f(a):
    return len(a.sum().item())
""",
    "error_text_iter_number": """
def f(a):
    for x in a.sum().item():
        pass
    return a
""",
    "error_text_unpack_number": """
def f(a):
    x, y = a.sum().item()
    return a
""",
    "error_text_foreign": """
import math
def f(a):
    return math.sqrt('x') + a
""",
    "error_text_foreign_tensor": """
import json
def f(a):
    return json.loads(a)
""",
    "error_text_dict_of_tensor": """
def f(a):
    return a + {'x': a}
""",
    # ---- effects under conditions, in loops, in gradients
    "if_append": """
log = []
def f(a):
    if a.sum() > 0:
        log.append('pos')
    else:
        log.append('neg')
    return a * 2
""",
    "if_append_tensor": """
log = []
def f(a):
    if a.sum() > 0:
        log.append(a * 3)
    return a * 2
""",
    "if_set_attribute": """
class C:
    pass
c = C()
c.n = 0
def f(a):
    if a.sum() > 0:
        c.n = c.n + 1
        c.last = a
    else:
        c.n = -1
    return a * c.n
""",
    "if_set_global": """
n = 0
def f(a):
    global n
    if a.sum() > 0:
        n = n + 1
    return a * n
""",
    "if_dict": """
d = {}
def f(a):
    if a.sum() > 0:
        d['pos'] = d.get('pos', 0) + 1
    else:
        d['neg'] = d.get('neg', 0) + 1
    return a
""",
    "if_print": """
def f(a):
    if a.sum() > 0:
        print('positive')
    else:
        print('negative')
    return a
""",
    "if_foreign": """
import collections
c = collections.Counter()
def f(a):
    if a.sum() > 0:
        c['pos'] += 1
    else:
        c.update(neg=1)
    return a
""",
    "if_deque_inside": """
import collections
def f(a):
    d = collections.deque([1.])
    if a.sum() > 0:
        d.append(2.)
    return a * len(d)
""",
    "if_bytearray_inside": """
def f(a):
    d = bytearray(b'x')
    if a.sum() > 0:
        d.append(2)
    return a * len(d)
""",
    "if_counter_inside": """
import collections
def f(a):
    d = collections.Counter()
    if a.sum() > 0:
        d['x'] += 2
    return a * (d['x'] + 1)
""",
    "if_array_inside": """
def f(a):
    d = np.zeros(3)
    if a.sum() > 0:
        d[0] = 2.
    return a * (float(d[0]) + 1)
""",
    "if_iterator_inside": """
def f(a):
    it = iter([1., 2., 3.])
    x = next(it)
    if a.sum() > 0:
        x = next(it)
    y = next(it)
    return a * x * y
""",
    "if_random": """
import random
random.seed(1)
def f(a):
    x = 1.
    if a.sum() > 0:
        x = random.random()
    return a * x
""",
    "loop_append": """
log = []
def f(a):
    while a.sum() < 50 and a.sum() > 0:
        log.append('step')
        a = a * 2
    return a
""",
    "loop_append_tensor": """
log = []
def f(a):
    while a.sum() < 50 and a.sum() > 0:
        log.append(a)
        a = a * 2
    return a
""",
    "loop_counter_attribute": """
class C:
    n = 0
c = C()
def f(a):
    while a.sum() < 50 and a.sum() > 0:
        c.n += 1
        a = a * 2
    return a * c.n
""",
    "loop_print": """
def f(a):
    i = 0
    while a.sum() < 50 and a.sum() > 0:
        print(i)
        i += 1
        a = a * 2
    return a
""",
    "loop_next": """
import itertools
it = itertools.count(1)
def f(a):
    while a.sum() < 50 and a.sum() > 0:
        a = a * (1 + next(it))
    return a
""",
    "loop_deque_inside": """
import collections
def f(a):
    d = collections.deque()
    while a.sum() < 50 and a.sum() > 0:
        d.append(1)
        a = a * 2
    return a * (len(d) + 1)
""",
    "range_loop_effects": """
log = []
def f(a):
    n = int(abs(a.sum()))
    for i in range(n):
        log.append(i)
        a = a + i
    return a
""",
    "loop_break_effects": """
log = []
def f(a):
    for i in range(5):
        log.append(i)
        if a.sum() > 20:
            log.append('break')
            break
        a = a * 2
    else:
        log.append('else')
    return a
""",
    "grad_inside": """
log = []
def h(x):
    log.append(x)
    print('in h')
    return (x * x).sum()
def f(a):
    log.append('before')
    g = ms.grad(h)(a)
    log.append('after')
    return g
""",
    "grad_inside_attribute": """
class C:
    pass
c = C()
c.calls = 0
def h(x):
    c.calls += 1
    c.last = x * 2
    return (x * x * c.calls).sum()
def f(a):
    return ms.grad(h)(a)
""",
    "grad_inside_foreign": """
import collections
d = collections.deque()
def h(x):
    d.append('called')
    return (x * x).sum()
def f(a):
    return ms.grad(h)(a)
""",
    "grad_inside_random": """
import random
random.seed(4)
def h(x):
    return (x * x * random.random()).sum()
def f(a):
    return ms.grad(h)(a)
""",
    "grad_inside_item": """
log = []
def h(x):
    y = (x * x).sum()
    log.append(y.item())
    return y
def f(a):
    return ms.grad(h)(a)
""",
    "value_and_grad_inside": """
log = []
def h(x):
    y = (x * x).sum()
    log.append(('value', y))
    return y
def f(a):
    v, g = ms.value_and_grad(h)(a)
    log.append(('got', v))
    return g
""",
    "grad_inside_condition": """
log = []
def h(x):
    if x.sum() > 0:
        log.append('pos')
        return (x * x).sum()
    log.append('neg')
    return (x * 3).sum()
def f(a):
    return ms.grad(h)(a)
""",
    "grad_inside_raises": """
log = []
def h(x):
    log.append('in')
    if x.sum() < 0:
        raise ValueError('neg')
    log.append('out')
    return (x * x).sum()
def f(a):
    return ms.grad(h)(a)
""",
    "second_grad": """
log = []
def h(x):
    log.append('h')
    return (x * x * x).sum()
def f(a):
    return ms.grad(lambda y: ms.grad(h)(y).sum())(a)
""",
    "vmap_effects": """
log = []
def h(x):
    log.append('h')
    return x * 2
def f(a):
    return ms.vmap(h)(a)
""",
    "host_result_in_gradient": """
def f(a):
    s = float(a.asnumpy().max())
    return a * a * s
""",
    "stop_gradient_item": """
def f(a):
    return a * a * a.sum().item()
""",
    "order_of_effects": """
import collections
log = []
d = collections.deque()
class C:
    pass
c = C()
c.log = log
def f(a):
    log.append(1)
    d.append(len(log))
    c.log.append(2)
    d.append(len(log))
    c.n = len(d)
    log.append(('n', c.n))
    print(len(log))
    return a * len(log)
""",
    "reads_after_foreign_write": """
import random
random.seed(2)
xs = [1., 2., 3.]
class C:
    n = 0
    def bump(self):
        self.n += 1
c = C()
import operator
def f(a):
    operator.methodcaller('bump')(c)
    return a * c.n
""",
    "write_before_host_read": """
class C:
    n = 0
c = C()
out = []
def f(a):
    c.n = c.n + 1
    c.x = a
    out.append(str(vars(c)['n']))
    out.append(len(c.__dict__))
    return a
""",
    "list_passed_to_host": """
import heapq
xs = [3., 1., 2.]
def f(a):
    xs.append(0.5)
    heapq.heapify(xs)
    return a * xs[0]
""",
    "list_passed_to_host_with_tensor": """
xs = []
class Host:
    pass
import collections
q = collections.deque()
def f(a):
    xs.append(a)
    q.append(xs)
    return a * len(xs)
def between():
    assert q[-1] is xs
""",
    "object_with_tensor_to_host": """
import collections
q = collections.deque(maxlen=2)
class Box:
    def __init__(self, x):
        self.x = x
def f(a):
    q.append(Box(a * 2))
    return a
""",
    "tuple_with_tensor_to_host": """
import collections
q = collections.deque(maxlen=2)
def f(a):
    q.append((a * 2, {'k': [a]}))
    return a
""",
    "inner_list_to_host": """
import collections
q = collections.deque(maxlen=2)
def f(a):
    xs = [a, 1]
    q.append(xs)
    xs.append(2)
    return a
""",
    "generator_to_host": """
import collections
q = collections.deque(maxlen=8)
def f(a):
    q.extend(x * 2 for x in (1., 2.))
    q.extend([a, a * 2])
    return a
""",
    "lambda_to_host": """
import collections
q = collections.deque(maxlen=2)
def f(a):
    q.append(lambda: 3)
    return a * 2
def between():
    assert q[-1]() == 3
    q.clear()
""",
    "print_tensor_in_object": """
class Box:
    def __init__(self, x):
        self.x = x
    def __repr__(self):
        return 'Box of ' + type(self.x).__name__
def f(a):
    print(Box(a))
    print([Box(a)])
    print({'k': Box(a)})
    return a
""",
}
