"""Programs about names: which ones a branch or loop carries, which ones it only makes, and which ones are dead."""

from __future__ import annotations

from hybridnet import nd

from .corpus_support import Programs, a

PROGRAMS = Programs()
program = PROGRAMS.add


@program((a(1, 2),), (a(-1, -2, -3),), cond=1)
def bound_on_one_side_and_dead(x):
    if x.sum() > 0:
        temporary = x * 3
        y = temporary * temporary
    else:
        other = x - 1
        y = other * 2
    return y


@program((a(1, 2),), (a(-1, -2, -3),), (a(7, 8),), cond=2)
def bound_before_and_on_one_side(x):
    y = x + 1
    if x.sum() > 0:
        y = y * x
    z = y
    if x.sum() > 10:
        pass
    else:
        z = z - 5
    return y + z * 2


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 1, 1, -4),), (a(9, 1),), foreach=1, cond=1)
def read_only_after_the_loop(x):
    best = nd.zeros((1,))
    at = 0
    for i, v in enumerate(x):
        if v * v > 8:
            best = v  # no iteration reads it
            at = i
    return best * 100 + at


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 1, 1, -4),), foreach=1, cond=1)
def local_to_an_iteration(x):
    total = x[0] * 0
    for v in x:
        square = v * v
        if square > 8:
            part = square - 8
            square = part * 2
        total = total + square
    return total


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 4, 1, -4),), foreach=1, while_=1, cond=2)
def loop_variable_after_the_loop(x):
    v = x[0] * 0
    total = x[0] * 0
    for v in x:
        total = total + v * (2 if v > 2 else 1)
    n = 0
    for n in range(total.astype("int32")):
        if n > 5:
            total = total - 1
    return total + v * 10 + n * 100


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 4, 1, -4),), foreach=2, cond=2)
def inner_names_shadow_outer_ones(x):
    total = x[0] * 0
    for v in x:
        weights = [v * 2 for v in (1, 2)]  # this v is another one
        for u in x:
            v = v + u if u > 0 else v - weights[0]  # the outer v, until its next iteration
        total = total * 0.5 + (v if v > 3 else -v) * weights[1]
    return total


@program((a(1, 2, 3),), (a(-1, 5),), (a(0, 0),), (a(-1, -2),), while_=1, cond=1)
def deleted_names(x):
    y = x * 2
    if x.sum() > 0:
        scale = x.sum()
        y = y * scale
        del scale
    else:
        y = y - 1
    while y.max() < 30:
        step = y * y + 1
        y = y + step
        del step
    z = y
    del y
    y = z * 2
    return y  # noqa: RET504  # bound again


@program((a(1, 2), a(5, 1)), (a(4, 1), a(1, 3)), (a(1, 1, 0), a(0, 40, 0)), (a(30, 30), a(9, 9)), while_=1, cond=1)
def swapped_names(x, y):
    if x.sum() > y.sum():
        x, y = y, x
    n = 0
    while y.sum() < 50:
        x, y, n = y, x + y + 1, n + 1
    return x * 10 + y + n


@program((a(1, 2, 3),), (a(-1, 5),), (a(2, 4, 1, -4),), foreach=2, cond=3)
def rebound_in_nested_loops(x):
    low, high = x[0], x[0]
    turns = 0
    for u in x:
        for v in x:
            if u * v < low:
                low = u * v
            elif u + v > high:
                high = u + v
                turns += 1
        if high > 6:
            high = high - 1
    return low * 100 + high + turns * 10


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 4, 1, -4),), foreach=1, cond=2)
def captured_by_a_function(x):
    scale = x[0] * 0 + 1

    def scaled(u):
        return u * scale  # the value of scale at the time of the call

    total = x[0] * 0
    for v in x:
        if v > 1:
            scale = scale * 2
        total = total + scaled(v)
    if total > 20:
        scale = scale + 100
    return scaled(total)


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 4, 1, -4),), cond=1)
def captured_as_a_default(x):
    scale = x[0]
    scaled = lambda u, by=scale: u * by  # noqa: E731  # the value of scale at the time of the definition
    if x.sum() > 4:
        scale = scale * 7
    return scaled(x) + scale


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 4, 1, -4),), foreach=1, cond=2)
def returned_by_an_inner_function(x):
    total, hits = x[0] * 0, 0

    def added(total, u):  # its own total
        if u > 4:
            total = total - u
        return total * 0.5 + u, hits + 1  # the outer hits

    for v in x:
        if v > 1:
            total, hits = added(total, v * 2)
    return total + hits * 100


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 4, 1, -4),), foreach=1, cond=1)
def bound_by_an_inner_function(x):
    total, hits = x[0] * 0, 0

    def add(u):
        nonlocal total, hits
        total = total * 0.5 + u
        hits += 1

    for v in x:
        if v > 1:
            add(v * 2)
    return total + hits * 100


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 4, 1, -4),), foreach=1, cond=1)
def carried_collected_and_local(x):
    state, count, seen = x[0] * 0, 0, []
    for i, v in enumerate(x):
        change = v - state
        if change > 1:
            state = state + change * 0.5
            count = count + i
        seen.append(change * change)
    return state + count * 10, nd.concat(*seen, dim=0)


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 4, 1, -4),), foreach=1, cond=2)
def first_bound_in_the_first_iteration(x):
    state = None  # so the first iteration is in front of the loop
    for v in x:
        if state is None:
            state = v * 3
        state = state * 0.5 + v if v > 1 else state - v
    return state


@program((a(1, 2),), (a(30, 1),), (a(0, 0, 0),), (a(2, 9),), while_=1)
def read_by_the_condition_only(x):
    budget = x.sum()
    y = x
    while budget < 20:
        y = y * 1.5 + 1
        budget = budget + 4
    return y


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 4, 1, -4),), foreach=1, cond=1)
def names_that_rotate(x):
    first, second, third = x[0], x[0] * 2, x[0] * 3
    for v in x:
        first, (second, third) = second, (third, first + v)
        if first > second:
            second, first = first, second
    return first + second * 10 + third * 100


@program((a(1, 2),), (a(-1, 5, 3),), (a(9, 9),), while_=1, cond=1)
def old_values_under_other_names(x):
    before = x
    if x.sum() > 6:
        x = x * 2
    start = x
    while x.sum() < 30:
        previous = x
        x = x * 2 + 1
        start = previous
    return before + start * 10 + x * 100


@program((a(1, 2, 3),), (a(-1, 5),), (a(9, 4, 1, -4),), (a(3, -4, 1),), foreach=1, cond=2)
def read_in_the_next_iteration(x):
    previous, total = x[0] * 0, x[0] * 0
    for v in x:
        if previous > 1:
            total = total + previous * v
        if v > 0:
            previous = v
        else:
            previous = previous * 2
    return total


@program(
    (a([1, 2, 3]),), (a([-1, 5, 2], [0, 4, 4]),), (a([9, 4, 1], [2, 2, 2], [-9, 0, 0]),), (a([1, 2, 6]),), foreach=1,
    cond=2,
)  # fmt: skip
def unpacked_with_a_star(x):
    total = x[0] * 0
    for row in x:
        first, *rest = row[0], row[1], row[2]
        if first > 0:
            (total, _), *others = (total + rest[0], first), first, rest[1]
        else:
            others = [first * 2, first]
        total = total + others[0] - others[1] * 10 if others[1] < 4 else total
    return total


@program((a(1, 2, 3),), (a(-1, 5),), (a(1, 1, 1, 1),), (a(9, 1, 1),), while_=1, cond=4)
def values_at_a_break(x):
    # No iteration before the first one binds last, so the first one is in front of the loop.
    product, v, i = x[0] * 0 + 1, x[0], 0
    for i, v in enumerate(x):  # noqa: B007
        product = product * v
        if product > 5:
            last = product - 5
            break
        last = product * 2
    else:
        last = product * 100
    if product < 0:
        last = last - 7
    return last + v * 10 + i


@program((a(1, 2),), (a(-1, 5, 3),), (a(9, 9),), (a(-4, -4),), cond=4)
def live_on_one_path_only(x):
    scale = x.max()
    if x.sum() > 10:
        return x  # scale is dead here
    if scale > 2:
        offset = scale * 3
    else:
        offset = x.min()
        if offset < -3:
            return x * offset
    return x * scale + offset
