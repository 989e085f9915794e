"""Programs that catch the error of a failed change of a container, or hold weak references."""

from outside_effects.programs_identity import WORLD

CAUGHT = {
    "made_getitem": """
    return a * cache[a + 1]
""",
    "made_pop_err": """
    b = a + 1
    try: v = cache.pop(b)
    except KeyError: v = 3.0
    return a * v
""",
    "made_pop_err2": """
    try: v = cache.pop('zz')
    except KeyError: v = 3.0
    return a * v
""",
    "made_del_err": """
    try: del cache['zz']
    except KeyError: pass
    return a * 3
""",
    "made_remove_err": """
    try: scalars.remove(77.0)
    except ValueError: pass
    return a * 3
""",
    "set_remove_err": """
    try: bag.remove(77.0)
    except KeyError: pass
    return a * 3
""",
    "list_pop_err": """
    try: scalars.pop(77)
    except IndexError: pass
    return a * 3
""",
    "list_setitem_err": """
    try: scalars[77] = 1
    except IndexError: pass
    return a * 3
""",
    "list_extend_err": """
    try: scalars.extend(7)
    except TypeError: pass
    return a * 3
""",
    "list_pop_err_uncaught": """
    scalars.append(2.0)
    scalars.pop(77)
    return a * 3
""",
    "pop_nested": """
    try:
        scalars.append(3.0)
        scalars.pop(77)
        scalars.append(4.0)
    except IndexError: scalars.append(5.0)
    return a * 3
""",
    "pop_cond": """
    if a.sum() > 0:
        try: cache.pop('zz')
        except KeyError: scalars.append(5.0)
    return a * 3
""",
    "setunhash": """
    try: cache[[]] = 2
    except TypeError: scalars.append(5.0)
    return a * 3
""",
    "weak_made": """
    b = a + 1
    names[b] = 3.0
    return a * len(names)
""",
    "weakset": """
    b = a + 1
    ws.add(b)
    return a * len(ws)
ws = weakref.WeakSet()
""",
    "weakref_made": """
    b = a + 1
    r = weakref.ref(b)
    return r() * 2
""",
    "weakref_arg": """
    r = weakref.ref(a)
    return r() * 2 * (r() is a)
""",
    "weakval": """
    b = a + 1
    wv['k'] = b
    return a * len(wv)
wv = weakref.WeakValueDictionary()
""",
    "deque_pop": """
    try: queue.remove(7)
    except Exception as e: items.append(type(e).__name__)
    return a * 3
""",
    "odict_pop": """
    try: odict.pop('zz')
    except KeyError: items.append('no')
    return a * 3
""",
    "ddict_del": """
    try: del ddict['zz']
    except KeyError: items.append('no')
    return a * 3
""",
    "odict_get": """
    try: v = odict['zz']
    except KeyError: v = 2.0
    return a * v
""",
    "frozen": """
    try: fr.x = 3
    except Exception as e: items.append(type(e).__name__)
    return a * fr.x
import dataclasses
@dataclasses.dataclass(frozen=True)
class Fr:
    x: float = 2.0
fr = Fr()
""",
    "slots": """
    try: fr.y = 3
    except AttributeError: items.append('no')
    return a * 2
class Fr:
    __slots__ = ('x',)
fr = Fr()
""",
    "ro_prop": """
    try: fr.y = 3
    except AttributeError: items.append('no')
    return a * 2
class Fr:
    y = property(lambda s: 1)
fr = Fr()
""",
    "setattr_raises": """
    try: fr.y = 3
    except ValueError: items.append('no')
    return a * 2
class Fr:
    def __setattr__(self, n, v): raise ValueError(n)
fr = Fr()
""",
    "delattr": """
    try: del box.zz
    except AttributeError: items.append('no')
    return a * 2
""",
    "delattr2": """
    try: delattr(box, 'zz')
    except AttributeError: items.append('no')
    return a * 2
""",
    "delglobal": """
    global zz
    try: del zz
    except NameError: items.append('no')
    return a * 2
""",
    "tuple_set": """
    try: pair[0] = 2
    except TypeError: items.append('no')
    return a * 2
""",
    "aug_missing": """
    try: cache['zz'] += 2
    except KeyError: items.append('no')
    return a * 2
""",
    "aug_attr_missing": """
    try: box.zz += 2
    except AttributeError: items.append('no')
    return a * 2
""",
    "list_arg": """
    return g([1, 2], a)
def g(l, t):
    try: l.remove(7)
    except ValueError: l.append(3)
    return t * len(l)
""",
    "array_set": """
    try: arr[9] = 2
    except IndexError: items.append('no')
    return a * 2
arr = np.zeros(3)
""",
    "popleft": """
    d2 = collections.deque()
    try: d2.popleft()
    except IndexError: items.append('no')
    return a * 2
""",
    "next_err": """
    try: next(it)
    except StopIteration: items.append('no')
    return a * 2
it = iter([1.0])
""",
    "made_list_err": """
    l = [1]
    try: l.remove(9)
    except ValueError: l.append(2)
    return a * len(l)
""",
    "suppress": """
    import contextlib
    with contextlib.suppress(KeyError): cache.pop('zz')
    return a * 2
""",
    "finally_": """
    try:
        try: cache.pop('zz')
        finally: items.append('fin')
    except KeyError: items.append('no')
    return a * 2
""",
}

PROGRAMS = {f"caught_{name}": f"{WORLD}def f(a):{text}" for name, text in CAUGHT.items()}
