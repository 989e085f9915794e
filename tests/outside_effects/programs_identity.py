"""Programs that find Tensors by their identity.

An argument may be a Tensor that a dict, set or list outside holds.
"""

WORLD = """
import weakref, collections, types
x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
ARGUMENTS = [x, y, Tensor([1.0, 2.0]), x]
cache = {x: 5.0, 'k': 3.0}
odict = collections.OrderedDict(cache)
ddict = collections.defaultdict(lambda: 11.0, cache)
bag = {x, 7}
frozen = frozenset([x])
items = [x, 9.0]
scalars = [1.0, x]
pair = (x, 9.0)
nested = {'a': {x: 2.0}, 'b': [x]}
queue = collections.deque([x])
names = weakref.WeakKeyDictionary(); names[x] = 8.0
__ids = {id(x): 4.0}
__hashes = {hash(x): 4.0}
class Box:
    def __init__(self, t): self.t = t
box = Box(x)
tied = Box(x)
def helper(t): return t in cache
import operator
"""

EXPRESSIONS = {
    "in_dict": "a * 2 if a in cache else a",
    "not_in_dict": "a * 2 if a not in cache else a",
    "get": "a * cache.get(a, 1.5)",
    "get_none": "a * 2 if cache.get(a) is None else a",
    "getitem": "a * cache[a]",
    "in_set": "a * 2 if a in bag else a",
    "in_frozen": "a * 2 if a in frozen else a",
    "in_set_made": "a * 2 if a in {x, y} else a",
    "in_dict_made": "a * 2 if a in {x: 1, y: 2} else a",
    "in_dict_made2": "a * {x: 1, y: 2}.get(a, 9)",
    "made_key_lookup": "a * ({a: 5.0}.get(x, 9))",
    "made_dup": "a * len({a: 5.0, x: 3.0})",
    "made_dupset": "a * len({a, x, y})",
    "set_call": "a * len(set([a, x, y]))",
    "fromkeys": "a * len(dict.fromkeys([a, x, y]))",
    "in_list": "a * 2 if a in items else a",
    "in_pair": "a * 2 if a in pair else a",
    "index": "a * items.index(a)",
    "index_pair": "a * pair.index(a)",
    "count": "a * items.count(a)",
    "count_pair": "a * pair.count(a)",
    "odict": "a * odict.get(a, 1.5)",
    "odict_in": "a * 2 if a in odict else a",
    "ddict": "a * ddict[a]",
    "deque_in": "a * 2 if a in queue else a",
    "nested": "a * nested['a'].get(a, 3.0)",
    "nested_in": "a * 2 if a in nested['b'] else a",
    "hash": "a * __hashes.get(hash(a), 1.0)",
    "hash_eq": "a * (hash(a) == hash(x))",
    "id": "a * __ids.get(id(a), 1.0)",
    "id_eq": "a * (id(a) == id(x))",
    "weak": "a * names.get(a, 1.0)",
    "weak_in": "a * (a in names)",
    "is_": "a * 2 if a is x else a",
    "is_attr": "a * 2 if a is box.t else a",
    "is_item": "a * 2 if a is items[0] else a",
    "any_is": "a * 2 if any(t is a for t in items) else a",
    "helper": "a * 2 if helper(a) else a",
    "tuple_key": "a * {(x, 1): 5.0}.get((a, 1), 2.0)",
    "tuple_in": "a * ((a, 1) in {(x, 1): 3.0})",
    "tuple_eq": "a * ((a, 1) == (x, 1))",
    "list_eq": "a * ([a] == [x])",
    "dict_eq": "a * ({'k': a} == {'k': x})",
    "set_eq": "a * ({a} == {x})",
    "set_issub": "a * ({a} <= bag)",
    "set_inter": "a * len({a} & bag)",
    "set_union": "a * len({a} | bag)",
    "set_diff": "a * len(bag - {a})",
    "set_issubset": "a * {a}.issubset(bag)",
    "keys_in": "a * (a in cache.keys())",
    "values_in": "a * (a in {'p': x}.values())",
    "dict_merge": "a * len({**cache, a: 1.0})",
    "dict_or": "a * len(cache | {a: 1.0})",
    "dictcomp": "a * len({k: 1 for k in (a, x, y)})",
    "zipdict": "a * dict(zip((x, y), (5., 6.))).get(a, 7.)",
    "view": "a * (a.view(2) in cache)",
    "made": "a * ((a + 0) in cache)",
    "made_get": "a * cache.get(a * 1, 2.0)",
    "made_in_list_unequal": "a * ((a + 100).sum() in [x.sum()])",
    "branch": "a * ((x if a.sum() > 0 else y) in cache)",
    "branch_get": "a * cache.get(a if a.sum() > 0 else y, 9.0)",
    "outside_key": "a * cache[x]",
    "outside_in": "a * (y in cache) + (x in bag)",
    "sorted_key": "a * sorted([1, 2], key=lambda i: a in cache)[0]",
    "match": "a * max([1.0, 2.0], key=lambda v: v if a in bag else -v)",
    "opcontains": "__import__ and a * (cache.__contains__(a))",
    "dictget_unbound": "a * dict.get(cache, a, 2.5)",
    "operator_contains": "a * operator.contains(cache, a)",
    "operator_is": "a * operator.is_(a, x)",
    "operator_indexof": "a * operator.indexOf([x, y], a)",
    "operator_countof": "a * operator.countOf([x], a)",
    "operator_getitem": "a * operator.getitem(cache, a)",
    "itemgetter": "a * operator.itemgetter(a)(cache)",
    "map_get": "a * sum(map(cache.get, [a, x], [1., 2.]))",
    "dictview": "a * len(cache.keys() & {a})",
    "proxy": "a * types.MappingProxyType(cache).get(a, 2.)",
    "chainmap": "a * collections.ChainMap({}, cache).get(a, 2.)",
    "counter": "a * collections.Counter([a, x])[x]",
}

STATEMENTS = {
    "setitem": """
    cache[a] = 6.0
    return a * len(cache)
""",
    "setitem_tensor": """
    cache[a] = a * 2
    return a * len(cache)
""",
    "setdefault": """
    v = cache.setdefault(a, 2.0)
    return a * v
""",
    "pop": """
    v = cache.pop(a, 2.0)
    return a * v
""",
    "pop_err": """
    try:
        v = cache.pop(a)
    except KeyError: v = 99.0
    return a * v
""",
    "del": """
    del cache[a]
    return a
""",
    "add": """
    bag.add(a)
    return a * len(bag)
""",
    "discard": """
    bag.discard(a)
    return a * len(bag)
""",
    "remove": """
    bag.remove(a)
    return a * len(bag)
""",
    "list_remove": """
    scalars.remove(a)
    return a * len(scalars)
""",
    "list_remove2": """
    items.remove(a)
    return a * len(items)
""",
    "weak_set": """
    names[a] = 3.0
    return a * len(names)
""",
    "odict_set": """
    odict[a] = 3.0
    return a * len(odict)
""",
    "ddict_set": """
    ddict[a] += 3.0
    return a * len(ddict)
""",
    "aug": """
    cache[a] = cache.get(a, 0.) + 1
    return a * cache[a]
""",
    "aug2": """
    cache[a] += 1
    return a * cache[a]
""",
    "update": """
    cache.update({a: 6.0})
    return a * len(cache)
""",
    "setupdate": """
    bag.update([a])
    return a * len(bag)
""",
    "setor": """
    global bag
    bag |= {a}
    return a * len(bag)
""",
    "memo": """
    if a not in cache:
        cache[a] = a * 2
    return cache[a] + 0 * a
""",
    "memo_id": """
    if id(a) not in __ids:
        __ids[id(a)] = 2.0
    return a * __ids[id(a)]
""",
    "local_memo": """
    d = {}
    for t in (a, x, y, a):
        d[t] = d.get(t, 0) + 1
    return a * d[a]
""",
    "seen": """
    seen = set(); n = 0
    for t in (a, x, y, a):
        if t not in seen: n += 1
        seen.add(t)
    return a * n
""",
    "dedupe": """
    out = []
    for t in (a, x, y):
        if not any(t is u for u in out): out.append(t)
    return a * len(out)
""",
    "list_pop_index": """
    i = [x, y].index(a) if a is x or a is y else 7
    return a * i
""",
    "stack": """
    box.t = a
    return a * (tied.t is box.t)
""",
    "box_in": """
    box.t = a
    return a * (box.t in cache)
""",
    "store_then": """
    cache['last'] = a
    return a * (cache['last'] is a) * (x is cache['last'])
""",
    "inter_upd": """
    bag.intersection_update({a, y})
    return a * len(bag)
""",
    "sdu": """
    bag.symmetric_difference_update({a})
    return a * len(bag)
""",
    "loop": """
    n = 0
    for k in cache:
        n += 1 if k is a else 0
    return a * n
""",
    "loop_items": """
    for k, v in cache.items():
        if k is a: return a * v
    return a
""",
    "while": """
    t = a
    i = 0
    while t in cache and i < 3:
        i += 1
    return a * i
""",
    "whilet": """
    t = a
    while t.sum() < 20:
        t = t * 2
    return t * (t in cache)
""",
    "ret_dict_made": """
    b = a + 1
    return {b: 2.0}
""",
    "ret_set_made": """
    b = a + 1
    return {b}
""",
    "update_made": """
    b = a + 1
    cache.update({b: 6.0})
    return b * len(cache)
""",
    "update_made2": """
    b = a + 1
    cache.update({b: 6.0})
    return b * cache[b]
""",
    "update_kw": """
    b = a + 1
    cache.update(k={b: 6.0})
    return b * len(cache)
""",
    "store_made_dict": """
    b = a + 1
    box.t = {b: b}
    return b
""",
    "store_made_set": """
    b = a + 1
    box.t = {b, 1}
    return b
""",
    "set_made": """
    b = a + 1
    bag.add(b)
    return b * len(bag)
""",
    "setitem_made": """
    b = a + 1
    cache[b] = b
    return b * len(cache)
""",
    "setitem_made2": """
    b = a + 1
    cache[b] = 1.0
    cache[b] += 1
    return b * cache[b]
""",
    "tuplekey_made": """
    b = a + 1
    cache[b, 1] = 1.0
    return b * len(cache)
""",
    "print_made": """
    b = a + 1
    print(len({b: 1}))
    return b
""",
    "raise_if": """
    if a is not x: raise ValueError('no')
    return a * 2
""",
    "raise_if_not": """
    if a is x: raise ValueError('no')
    return a * 2
""",
    "assert_is": """
    assert a is x
    return a * 2
""",
    "assert_after": """
    print('hi')
    assert a is x
    return a * 2
""",
    "try_is": """
    try:
        if a is not x: raise ValueError('no')
    except ValueError: return a * 5
    return a * 2
""",
    "dict_arg": """
    return g({'p': a}, a)
def g(d, t): return t * (d['p'] is t)
""",
    "in_scalar": """
    s = a.sum()
    return a * (s in (1.0, s)) * (s in [s * 1, 3.0])
""",
    "index_scalar": """
    s = a.sum()
    return a * [1.0, s].index(s)
""",
    "hash_made": """
    b = a + 1
    return a * (hash(b) == hash(b))
""",
    "hash_outside": """
    return a * (hash(x) == hash(y))
""",
    "hash_num": """
    return a * (hash(3) + hash((1, 2)) % 7)
""",
    "deepcopy": """
    import copy
    return a * len(copy.deepcopy({a + 1: 2}))
""",
    "paramdict": """
    return a * {p: i for i, p in enumerate(ps)}[ps[1]]
ps = [ms.Parameter(Tensor([1.0, 2.0]), name='a'), ms.Parameter(Tensor([1.0, 2.0]), name='b')]
""",
    "id_of_made": """
    b = a + 1
    return a * (id(b) == id(b))
""",
    "lru": """
    return h(a)
import functools
count = [0]
@functools.lru_cache
def h(t):
    count[0] += 1
    return t * 2
""",
    "lru_method": """
    return h(a) + h(x)
import functools
count = [0]
@functools.lru_cache(maxsize=None)
def h(t):
    count[0] += 1
    return t * 2
""",
    "memo_class": """
    return h(a)
class Memo:
    def __init__(self, f): self.f, self.seen = f, {}
    def __call__(self, t):
        if t not in self.seen: self.seen[t] = self.f(t)
        return self.seen[t]
@Memo
def h(t): return t * 2
""",
    "dict_sub": """
    return a * od.get(a, 2.)
class D(dict): pass
od = D({x: 3.0})
""",
    "dict_sub2": """
    return a * od[a]
class D(dict):
    def __missing__(self, k): return 5.0
od = D({x: 3.0})
""",
    "list_sub": """
    return a * (a in ol)
class L(list): pass
ol = L([x, 3.0])
""",
    "userdict": """
    return a * od.get(a, 2.)
od = collections.UserDict({x: 3.0})
""",
    "bigtuple": """
    for p in ((x, 1), (a, 2)):
        if p[0] is a: return a * p[1]
    return a
""",
    "remove_then": """
    l = [a, x, y]
    l.remove(a)
    return a * len(l)
""",
    "list_count2": """
    l = [a, a]
    return a * l.count(a)
""",
    "eq_same": """
    l = [a, 1]
    return a * (l == [a, 1])
""",
    "tuple_lt": """
    return a * ((1, a) < (2, x))
""",
    "sorted_t": """
    return sorted([(2, a), (1, x)])[0][1] * a
""",
    "max_t": """
    return max((1, a), (2, x))[1]
""",
}

PROGRAMS = {
    **{
        f"identity_{name}": f"{WORLD}def f(a):\n    return {text}\n"
        for name, text in EXPRESSIONS.items()
    },
    **{f"identity_{name}": f"{WORLD}def f(a):{text}" for name, text in STATEMENTS.items()},
}
