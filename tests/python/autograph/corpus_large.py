"""Programs of 30 to 100 lines, as one finds them: searches, solvers, simulations, an interpreter."""

from __future__ import annotations

import hybridnet as mx
from hybridnet import gluon, nd

from .corpus_support import Programs, a

PROGRAMS = Programs()
program = PROGRAMS.add


LETTERS, WIDTH, END = 4, 3, 0


def table(seed):
    """Returns scores of letters after letters, without random numbers."""
    return a(*[[((i * 7 + k * 5 + seed * 3) % 11) / 4 for k in range(LETTERS)] for i in range(LETTERS)])


@program(
    (table(1), a(0.5)), (table(2), a(0)), (table(4), a(3)), (table(6) - 9, a(1)),
    while_=1, foreach=3, cond=4, gradient=False,
)  # fmt: skip
def beam_search(scores, penalty):
    """Finds the words of the highest score; all beams that end at END stop, and a short search ends early."""
    log_chances = nd.log_softmax(scores, axis=1)
    words = nd.ones((WIDTH, 1))
    totals = nd.array([0.0, -1e9, -1e9])
    finished = nd.zeros((WIDTH,))
    mx.autograph.shape_invariants(words=(3, None))
    for _ in range(8):
        last = nd.slice_axis(words, axis=1, begin=-1, end=None).reshape((-1,))
        rows = []
        for letter, total, done in zip(last, totals, finished):
            if done > 0:
                row = nd.full((LETTERS,), -1e9)
                row[END] = total[0]
            else:
                row = total + log_chances[letter.astype("int32")].reshape((-1,)) - penalty
            rows.append(row)
        flat_totals = nd.stack(*rows).reshape((-1,))
        totals, best = nd.topk(flat_totals, k=WIDTH, ret_typ="both")
        parents = nd.floor(best / LETTERS)
        chosen = best - parents * LETTERS
        words = nd.concat(nd.take(words, parents), chosen.reshape((-1, 1)), dim=1)
        finished = chosen == END
        if finished.min() > 0:
            break
    count = nd.zeros((WIDTH,))
    for row in nd.transpose(words):
        count = count + (row != END)
    return words, totals, count


@program(
    (a(3, -2), a(0.5), a(1e-2)), (a(0.1, 0.2, -0.3), a(0.1), a(1e-3)), (a(5,), a(1), a(30)), (a(-40, 8), a(2), a(1)),
    while_=1, cond=8,
)  # fmt: skip
def adam(w, rate, tolerance):
    """Minimizes a function with Adam, gradient clipping, a smaller rate after a worse step, and an early end."""
    mean, variance = nd.zeros_like(w), nd.zeros_like(w)
    best, best_loss = w, nd.full((1,), 1e10)
    patience, step = 0, 0
    for step in range(1, 26):
        residual = w - 1
        loss = (residual * residual).sum() + w.abs().sum() * 0.1
        gradient = 2 * residual + nd.sign(w) * 0.1
        norm = (gradient * gradient).sum().sqrt()
        if norm > 4:
            gradient = gradient * 4 / norm
        mean = 0.9 * mean + 0.1 * gradient
        variance = 0.99 * variance + 0.01 * gradient * gradient
        change = (mean / (1 - 0.9**step)) / ((variance / (1 - 0.99**step)).sqrt() + 1e-6)
        w = w - rate * change
        if loss < best_loss:
            best, best_loss = w, loss
            patience = 0
        else:
            patience += 1
            rate = rate * 0.5
        if norm < tolerance or patience >= 3:
            break
    return best, best_loss, rate, step * w


def distance(p):
    """The signed distance to a sphere and a floor."""
    sphere = (p * p).sum().sqrt() - 1
    floor = p[1] + 1.2
    return sphere if sphere < floor else floor


@program(
    (a([0, 0, 1], [0.1, 0, 1], [0, -0.5, 1]), a(0.3, 1, -0.5)), (a([0, 1, 0.1], [0.2, -0.9, 1]), a(0, 1, 0)),
    (a([0.5, 0.5, 1]), a(-1, -1, 0)),
    (a([0.05, -0.1, 1], [0, -1, 0.2], [0, 0.4, 1], [0.3, 0, 1], [1, -1, 0.4]), a(1, 2, -1)),
    (a([-0.3, -1, 2], [0.7, -0.6, 1.5], [0.345, 0, 1]), a(1, 2, -1)),
    foreach=1, while_=1, cond=7, gradient=False,
)  # fmt: skip
def ray_marching(directions, light):
    """Marches a ray per pixel through the scene of distance(), and shades what it hits."""
    origin = nd.array([0.0, 0.0, -3.0])
    light = light / (light * light).sum().sqrt()
    pixels, depths = [], []
    for direction in directions:
        direction = direction / (direction * direction).sum().sqrt()
        depth = nd.zeros((1,))
        hit, steps = False, 0
        while steps < 10 and depth < 8:
            near = distance(origin + direction * depth)
            if near < 1e-2:
                hit = True
                break
            depth = depth + near
            steps += 1
        if not hit:
            color = 0.1 + 0.2 * direction[1].abs()
        else:
            point = origin + direction * depth
            if (point * point).sum() > 1.1:
                checks = nd.floor(point[0] * 2) + nd.floor(point[2] * 2)
                color = nd.full((1,), 0.3) if checks % 2 == 0 else nd.full((1,), 0.7)
            else:
                color = nd.maximum((point * light).sum(), 0) + 0.05
        pixels.append(color)
        depths.append(depth + steps * 0.001)
    return nd.concat(*pixels, dim=0), nd.concat(*depths, dim=0)


@program(
    (a(-2, 0, 2), a(-1, 0, 1), a(3, 2, 4)), (a(1, 5), a(0, 0), a(10, 3)), (a(0.5), a(-3), a(4)),
    (a(-9, -1), a(-5, -0.5), a(5, 0.5)),
    (a(2, 9), a(4, 1), a(-1, 3)), (a(1e6, 1), a(0, 0), a(1, 1)), foreach=1, while_=4, cond=14, gradient=False,
)  # fmt: skip
def bisection(targets, low, high):
    """Finds per row the x between low and high with x ** 3 + x == target; widens the bounds first if needed."""

    def value(x, target):
        return x * x * x + x - target

    roots, errors = [], []
    for target, left, right in zip(targets, low, high):
        if left > right:
            left, right = right, left
        doublings = 0
        while value(left, target) * value(right, target) > 0 and doublings < 5:
            if value(left, target) > 0:
                left = left * 2 - 1
            else:
                right = right * 2 + 1
            doublings += 1
        middle = (left + right) / 2
        for iteration in range(30):  # noqa: B007
            middle = (left + right) / 2
            error = value(middle, target)
            if error.abs() < 1e-4:
                break
            if error > 0:
                right = middle
            else:
                left = middle
        roots.append(middle)
        errors.append(error + iteration + doublings * 100)
    return nd.concat(*roots, dim=0), nd.concat(*errors, dim=0)


@program(
    (a(1, 2, 3), a(1, 3)), (a(5, 5, 5), a(5, 5, 5)), (a(1, 2, 3, 4, 5), a(2, 3, 9, 5)), (a(7), a(1, 2, 7, 3)),
    (a(4, 1, 2), a(1, 2)), foreach=2, cond=1, gradient=False,
)  # fmt: skip
def levenshtein(one, two):
    """Counts edits from one to two: a replacement costs the difference, at most 2; equal letters earn 0.5."""
    row = nd.concat(nd.zeros((1,)), nd.cumsum(nd.ones_like(two)), dim=0)
    most = nd.zeros((1,))
    for letter in one:
        first = row[0] + 1
        diagonal = row[0]
        left = first
        entries = [first]
        for other, above in zip(two, row[1:]):
            if letter == other:
                new = diagonal - 0.5
            else:
                cost = nd.minimum((letter - other).abs(), 2)
                new = nd.minimum(nd.minimum(above + 1, left + 1), diagonal + cost)
            entries.append(new)
            diagonal = above
            left = new
        row = nd.concat(*entries, dim=0)
        most = nd.maximum(most, row.max())
    return row, row[-1], most


PUSH, ADD, MULTIPLY, SWAP, JUMP_IF_POSITIVE, DECREMENT, HALT = range(7)


@program(
    (a([PUSH, 2], [PUSH, 3], [ADD, 0], [HALT, 0]),),
    (a([PUSH, 2], [PUSH, 5], [SWAP, 0], [PUSH, 3], [MULTIPLY, 0], [HALT, 0], [ADD, 0]),),
    (a([PUSH, 1], [PUSH, 4], [SWAP, 0], [PUSH, 2], [MULTIPLY, 0], [SWAP, 0], [DECREMENT, 0], [JUMP_IF_POSITIVE, 2]),),
    (a([PUSH, 1], [PUSH, 1], [JUMP_IF_POSITIVE, 0]),),
    (a([PUSH, 9], [DECREMENT, 0], [DECREMENT, 0]),),
    (a([PUSH, 1], [JUMP_IF_POSITIVE, 1], [HALT, 0]),),
    while_=1, cond=20, gradient=False, per_length="the length decides in Python",
)  # fmt: skip
def stack_interpreter(code):
    """Runs a program of instructions on a stack of 8 numbers, for at most 60 steps."""
    stack = nd.zeros((8,))
    top, position, steps = -1, 0, 0
    failed = False
    while position < code.shape[0] and steps < 60:
        steps += 1
        instruction = code[position]
        kind, argument = instruction[0], instruction[1]
        position += 1
        if kind == HALT:
            break
        if kind == PUSH:
            if top >= 7:
                failed = True
                break
            top += 1
            stack[top] = argument[0]
        elif kind == ADD or kind == MULTIPLY:  # noqa: SIM109
            one, two = stack[top], stack[top - 1]
            top -= 1
            stack[top] = one + two if kind == ADD else one * two
        elif kind == SWAP:
            kept = stack[top].copy()
            stack[top] = stack[top - 1]
            stack[top - 1] = kept
        elif kind == JUMP_IF_POSITIVE:
            if stack[top] > 0:
                position = argument.astype("int64").asscalar()
        else:
            stack[top] = stack[top] - 1
    return stack, stack * 0 + steps, stack[0] * 0 - 1 if failed else stack[0] + top


class Stage(gluon.HybridBlock):
    def __init__(self, size):
        super().__init__()
        self.dense = gluon.nn.Dense(size, in_units=size)
        self.exit = gluon.nn.Dense(3, in_units=size)

    def forward(self, x):
        y = self.dense(x).tanh()
        return y + x, nd.softmax(self.exit(y), axis=1)


@program(
    (a([1, 2, -1, 0.5]), a(0.6)), (a([1, -2, 1, 0.5], [3, 1, 1, -1]), a(0.4)), (a([0.1, 0, 0, 0]), a(0.45)),
    (a([1, 0, 0, 1], [0, 0, 0, 0], [9, 9, -9, 1]), a(0.34)), cond=13,
)  # fmt: skip
class EarlyExit(gluon.HybridBlock):
    """Ends after the first stage that is certain, but not too certain; refines large features of the others."""

    def __init__(self):
        super().__init__()
        self.stages = gluon.nn.HybridSequential()
        for _ in range(3):
            self.stages.add(Stage(4))
        self.refine = gluon.nn.Dense(4, in_units=4)

    def confident(self, chances, threshold):
        certainty = chances.max(axis=1)
        return certainty.min() > threshold and certainty.max() < 0.7

    def forward(self, x, threshold):
        used = 0
        chances = None
        for stage in self.stages:
            x, chances = stage(x)
            used += 1
            if self.confident(chances, threshold):
                break
            if used < 3 and x.abs().max() > 1.5:
                x = x + self.refine(x) * 0.1
        if chances.max() < 0.5:
            chances = nd.ones_like(chances) / 3
        return chances, x.sum() + used


@program(
    (a(1, 0), a(2), a(1e-2)), (a(0.5, 2, 1), a(1), a(1e-4)), (a(3,), a(0.05), a(1)), (a(-2, 4), a(3), a(1e-3)),
    while_=1, cond=4, gradient=False,
)  # fmt: skip
def adaptive_ode(y, end, tolerance):
    """Integrates y' = -y ** 3 + sin(4 t) with Heun's method; the step size follows the estimated error."""

    def slope(t, y):
        return -y * y * y + nd.sin(4 * t)

    t, h = nd.zeros((1,)), nd.full((1,), 0.5)
    accepted, rejected = 0, 0
    times = []
    mx.autograph.max_iterations(400)
    while t < end - 1e-5:
        if t + h > end:
            h = end - t
        k1 = slope(t, y)
        k2 = slope(t + h, y + h * k1)
        error = ((k2 - k1) * h / 2).abs().max()
        if error <= tolerance:
            t = t + h
            y = y + h * (k1 + k2) / 2
            accepted += 1
            if error < tolerance * 0.1:
                h = h * 2
        else:
            rejected += 1
        factor = (tolerance / (error + 1e-8)).sqrt() * 0.9
        h = h * (factor if factor < 2 else 2)
        times.append(t)
    return y, h, nd.concat(t, *times, dim=0).sum(), accepted + rejected * 100 + y * 0


@program(
    (a(0.8), a(200)), (a(-0.5), a(300)), (a(0), a(250)), (a(0.99), a(12)),
    while_=1, cond=5, gradient=False, random=True,
)  # fmt: skip
def gibbs_sampler(correlation, most):
    """Samples two normal numbers of a correlation in turns; stops when the mean of enough samples is near 0."""
    spread = (1 - correlation * correlation).sqrt()
    u, v = nd.zeros((64,)), nd.zeros((64,))
    count, total, product = 0, nd.zeros((1,)), correlation
    while count < most:
        u = correlation * v + spread * nd.random.normal(shape=(64,))
        v = correlation * u + spread * nd.random.normal(shape=(64,))
        count += 1
        if count > 20:
            total = total + u.mean()
            product = product + (u * v).mean()
            if count > 150 and (total / count).abs() < 5e-3:
                break
    used = count - 20 if count > 20 else 1
    return total / used, product / used


@program(
    (a([0, 0], [0, 1], [5, 5], [6, 5]), a([0, 0], [1, 1])),
    (a([0, 0], [0, 1], [5, 5], [6, 5], [9, 9], [-3, 1]), a([0, 0], [1, 1], [50, 50])), (a([1, 2]), a([0, 0])),
    (a([3, 1], [3, 2], [4, 2], [8, 1], [7, 1], [0, 6], [1, 9]), a([3, 1], [3.5, 1])), while_=1, foreach=2, cond=2,
)  # fmt: skip
def k_means(points, centers):
    """Moves centers to the means of their points until they rest; a center without points takes the farthest one."""
    rounds = 0
    moved = nd.full((1,), 1e9)
    while moved > 1e-3 and rounds < 3:
        labels, gaps = [], []
        for point in points:
            difference = nd.broadcast_sub(centers, point.reshape((1, 2)))
            squares = (difference * difference).sum(axis=1)
            labels.append(squares.argmin(axis=0))
            gaps.append(squares.min())
        assigned, gap = nd.concat(*labels, dim=0), nd.concat(*gaps, dim=0)
        farthest = points[gap.argmax(axis=0).astype("int32")].reshape((-1,))
        new = []
        for k, center in enumerate(centers):
            member = assigned == k
            if member.sum() > 0:
                center = (points * member.reshape((-1, 1))).sum(axis=0) / member.sum()
            else:
                center = farthest
            new.append(center)
        moved_centers = nd.stack(*new)
        moved = (moved_centers - centers).abs().max()
        centers = moved_centers
        rounds += 1
    return centers, moved, rounds * centers
