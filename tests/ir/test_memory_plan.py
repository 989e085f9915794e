"""Plans of memory: what may lie at one place, what may be written over, and what may take a
parameter's memory.
"""

import random

import pytest
from duograph.backend.prepared import PreparedCall
from duograph.backend.program import Alias, Choice, Copy, Loop, Step
from duograph.dtype import bool_
from duograph.execution.memory_plan import plan_memory
from duograph.scopes import Scope
from duograph.size_code import evaluator


def kernel(overwrites=(), infallible=True):
    def call(*handles):
        raise AssertionError("a plan runs nothing")

    return PreparedCall(call, tuple(overwrites), infallible)


def step(operands, results, overwrites=(), infallible=True):
    call = kernel(overwrites, infallible)
    return Step(call, tuple(operands), tuple(results), len(results) == 1, "op")


def test_a_chain_of_steps_that_write_over_their_operand_needs_one_piece():
    steps = [step([i], [i + 1], [(0, 0)]) for i in range(6)]
    plan = plan_memory(steps, [0], [64] * 7, [6])
    assert plan.arena == 0 and plan.results == 64  # it lies in the result from the start
    assert plan.shares == dict.fromkeys(range(1, 6), 6)


def test_without_that_two_pieces_alternate():
    steps = [step([i], [i + 1]) for i in range(6)]
    plan = plan_memory(steps, [0], [64] * 7, [6])
    assert plan.arena == 128
    assert [plan.places[i] for i in range(1, 6)] == [0, 64, 0, 64, 0]
    assert plan.places[6] == -1 and plan.total == 5 * 64 and plan.values == 5


@pytest.mark.parametrize(
    "steps, sizes, outputs",
    [
        ([step([0], [1], [(0, 0)])], [64, 64], [1]),  # a parameter
        (
            [step([0], [1]), step([1], [2], [(0, 0)]), step([1], [3])],
            [64] * 4,
            [2, 3],
        ),  # read later
        ([step([0], [1]), step([1, 1], [2], [(0, 0)])], [64] * 3, [2]),  # read twice
        ([step([0], [1]), step([1], [2], [(0, 0)])], [64, 64, 32], [2]),  # of another size
        ([step([0], [1]), step([1], [2], [(0, 0)])], [64] * 3, [1, 2]),  # a result itself
    ],
)
def test_what_is_not_written_over(steps, sizes, outputs):
    assert plan_memory(steps, [0], sizes, outputs).shares == {}


def update(*steps, sizes=None, outputs=(2,)):
    return plan_memory(steps, [0, 1], sizes or [64] * 9, outputs, {0: 0}).donations


def test_a_new_value_takes_the_memory_of_the_old_one():
    assert update(step([0, 1], [2], [(0, 0)])) == {0: 0}
    assert update(step([0], [3]), step([3, 1], [2])) == {0: 0}  # the old one is not read any more


@pytest.mark.parametrize(
    "steps, more",
    [
        ([step([0, 1], [2])], {}),  # reads the old value in an order of its own
        ([step([0, 0], [2], [(0, 0)])], {}),
        ([step([0, 1], [2], [(0, 0)]), step([0], [3])], {"outputs": (2, 3)}),  # read later
        ([step([0, 1], [2], [(0, 0)])], {"outputs": (2, 0)}),  # returned as well
        ([step([0, 1], [2], [(0, 0)]), step([1], [3], infallible=False)], {"outputs": (2, 3)}),
        ([step([0, 1], [2], [(0, 0)], infallible=False)], {}),
        (
            [step([0, 1], [2], [(0, 0)]), step([1], [3]), Loop(3, (), ())],
            {},
        ),  # which can be interrupted
        ([step([0, 1], [2], [(0, 0)])], {"sizes": [64, 64, 128]}),
        ([step([0, 1], [3], [(0, 0)]), Copy(3, 2)], {}),
    ],
)
def test_what_keeps_the_old_value(steps, more):
    assert update(*steps, **more) == {}


def test_what_a_loop_reads_lives_until_it_ends():
    body = (step([3, 1], [4]), step([4], [6]), step([6], [7]), Alias(7, 2))
    steps = [
        step([0], [1]),
        step([0], [8]),
        Alias(8, 2),
        Alias(0, 3),
        Loop(2, ((3, 4, 5),), body),
        step([3], [9]),
    ]
    plan = plan_memory(steps, [0], [64] * 10, [9])
    whole = [
        1,
        4,
        5,
    ]  # used in every turn, or the carry: no two of them at one place, nor with what the body makes
    places = [plan.places[i] for i in (*whole, 6, 7)]
    assert len(set(places[:3])) == 3 and not set(places[:3]) & set(places[3:])
    assert plan.places[3] == -1 and plan.places[2] == -1  # other names


def test_what_a_branch_gives_lives_as_long_as_the_result():
    steps = [
        step([0], [1]),
        Choice(0, bool_, ((step([1], [2]), Alias(2, 4)), (step([1], [3]), Alias(3, 4)))),
        step([1], [5]),
        step([5, 4], [6]),
    ]
    plan = plan_memory(steps, [0], [64] * 7, [6])
    assert plan.places[5] not in (plan.places[2], plan.places[3])


@pytest.mark.parametrize("seed", range(20))
def test_values_that_live_together_lie_apart(seed):
    """Any straight program: no two values overlap while both are needed, and the arena is not much
    more than needed.
    """
    draw = random.Random(seed)
    n = 200
    sizes = [draw.choice([1, 64, 1000, 4096, 100000]) for _ in range(n + 1)]
    steps = [step([draw.randrange(max(0, i - 12), i + 1)], [i + 1]) for i in range(n)]
    plan = plan_memory(steps, [0], sizes, [n])
    last = dict.fromkeys(range(n + 1), -1)
    for now, s in enumerate(steps):
        last[s.operands[0]] = now
    lives = {i: (i - 1, max(last[i], i - 1)) for i in range(1, n)}
    for a in range(1, n):
        for b in range(a + 1, n):
            if lives[a][1] >= lives[b][0]:
                one, other = sorted([(plan.places[a], sizes[a]), (plan.places[b], sizes[b])])
                assert one[0] + one[1] <= other[0], (a, b)
    most = max(sum(sizes[i] for i, (f, t) in lives.items() if f <= now <= t) for now in range(n))
    assert most <= plan.arena <= 1.5 * most + 64 * n


@pytest.mark.parametrize("seed", range(6))
def test_offsets_for_all_sizes_keep_values_apart_for_any_sizes(seed):
    """Values that live at the same time never overlap, whatever the sizes are.

    For the sizes of the example, the arena is not larger than that of the plan for these sizes.
    """
    rng = random.Random(seed)
    scope = Scope()
    n, m = scope.symbol(rng.choice([17, 61])), scope.symbol(rng.choice([29, 83]))
    kinds = [n * 4, n * n * 4, m * 8, n * m * 4, (n + m) // 2 * 4, n * 4 + 4, 40, 4096]
    count = 40
    sizes = [rng.choice(kinds) for _ in range(count)]
    steps = [
        step(rng.sample(range(k), min(k, rng.randint(1, 3))), [k], [(0, 0)])
        for k in range(1, count)
    ]
    plan = plan_memory(steps, [0], sizes, [count - 1])
    lives = {0: (0, 0)}
    for now, each in enumerate(steps, 1):
        for slot in (*each.operands, *each.results):
            lives[slot] = lives.get(slot, (now, now))[0], now
    compute = evaluator(scope.symbols, [list(plan.places), plan.arena, sizes])
    tried = 0
    for values in [(n.hint, m.hint), (3, 500), (500, 3), (77, 41), (1000, 999), (13, 14)]:
        if not scope.holds(dict(zip(scope.symbols, values))):
            continue  # two sizes are equal, and for the example they are not
        tried += 1
        places, arena, found = compute(*values)
        inside = [slot for slot in range(count) if plan.places[slot] != -1]
        assert len(inside) > 5
        for slot in inside:
            assert places[slot] % 64 == 0 and places[slot] + found[slot] <= arena
        for a in inside:
            for b in inside:
                if a < b and lives[a][1] > lives[b][0] and lives[b][1] > lives[a][0]:
                    first, last = sorted((a, b), key=lambda slot: places[slot])
                    assert places[first] + found[first] <= places[last], (values, a, b)
        if values == (n.hint, m.hint):
            exact = plan_memory(steps, [0], found, [count - 1])
            assert arena <= exact.arena
    assert tried >= 4
