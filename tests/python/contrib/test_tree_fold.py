"""tree_fold beside recursive programs on arrays: values, gradients, one graph for all trees, files."""

from __future__ import annotations

import collections

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors, gluon
from hybridnet.contrib import tree_fold, tree_of

nd = mx.nd
State = collections.namedtuple("State", "h c")
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


class TreeLSTM(gluon.HybridBlock):
    """Child-sum TreeLSTM (Tai et al. 2015). forward uses tree_fold; recursive() is the program on arrays."""

    def __init__(self, inputs, hidden, dtype):
        super().__init__()
        self.hidden, self.dtype = hidden, dtype
        with self.name_scope():
            dense = lambda width, used, **more: gluon.nn.Dense(  # noqa: E731
                width, in_units=used, flatten=False, dtype=dtype, weight_initializer=mx.init.Normal(0.4), **more
            )
            self.of_input = dense(4 * hidden, inputs, bias_initializer=mx.init.Normal(0.2))
            self.of_sum = dense(3 * hidden, hidden, use_bias=False)
            self.of_child = dense(hidden, hidden, use_bias=False)
        self.initialize()

    def start(self):
        return State(nd.zeros((self.hidden,), dtype=self.dtype), nd.zeros((self.hidden,), dtype=self.dtype))

    def step(self, x, states, mask):
        """x (W, inputs), states (W, k, hidden), mask (W, k)."""
        mask = mask.expand_dims(axis=2)
        h = (states.h * mask).sum(axis=1)
        from_x = nd.split(self.of_input(x), num_outputs=4, axis=1)
        from_h = nd.split(self.of_sum(h), num_outputs=3, axis=1)
        i, o, u = [one + other for one, other in zip(from_x[:3], from_h, strict=True)]
        forget = nd.broadcast_add(self.of_child(states.h), from_x[3].expand_dims(axis=1)).sigmoid()
        c = i.sigmoid() * u.tanh() + (forget * states.c * mask).sum(axis=1)
        return State(o.sigmoid() * c.tanh(), c)

    def forward(self, tree, data):
        return tree_fold(self.step, tree, data, self.start())

    def recursive(self, children, data):
        """The states of all nodes, computed one node at a time."""
        made = {}

        def state_of(node):
            if node not in made:
                states = [state_of(child) for child in children[node]] or [self.start()]
                of_children = State(
                    *[nd.stack(*part, axis=0).expand_dims(axis=0) for part in zip(*states, strict=True)]
                )
                mask = nd.full((1, len(states)), 1 if children[node] else 0, dtype=self.dtype)
                new = self.step(data[node : node + 1], of_children, mask)
                made[node] = State(*[part[0] for part in new])
            return made[node]

        states = [state_of(node) for node in range(len(children))]
        return State(*[nd.stack(*part, axis=0) for part in zip(*states, strict=True)])


def chain(count):
    return [[i + 1] for i in range(count - 1)] + [[]]


def star(count):
    return [list(range(1, count))] + [[] for _ in range(count - 1)]


def binary(depth):
    count = 2**depth - 1
    return [[2 * i + 1, 2 * i + 2] if 2 * i + 2 < count else [] for i in range(count)]


def caterpillar(count):
    """A chain with a leaf at each node."""
    return [[i + 1, count + i] for i in range(count - 1)] + [[]] + [[] for _ in range(count - 1)]


def random_tree(rng, count, roots=1, most=None):
    """Children of nodes in random order."""
    names = rng.permutation(count)
    children = [[] for _ in range(count)]
    for i in range(roots, count):
        free = [j for j in range(i) if most is None or len(children[names[j]]) < most]
        children[names[rng.choice(free)]].append(int(names[i]))
    return children


SHAPES = {
    "one node": [[]],
    "two roots": [[], []],
    "chain": chain(23),
    "star": star(19),
    "binary": binary(4),
    "caterpillar": caterpillar(9),
    "children before parents": [[], [0], [1], [], [2, 3]],
    "a chain and a star": [[1], [2], [3], [], [5, 6, 7, 8], [], [], [], []],
}


def values_and_gradients(function, net, data):
    """Returns the states, and the gradients of a sum with weights by the data and all parameters."""
    data = nd.array(data, dtype=net.dtype)
    data.attach_grad()
    params = list(net.collect_params().values())
    for param in params:
        param.zero_grad()
    with mx.autograd.record():
        states = function(data)
        weights = nd.array(np.cos(np.arange(states.h.size)).reshape(states.h.shape), dtype=net.dtype)
        loss = (states.h * weights).sum() + (states.c * states.c).sum()
    loss.backward()
    return [part.asnumpy() for part in states] + [data.grad.asnumpy()] + [p.grad().asnumpy() for p in params]


def assert_close(given, wanted, dtype):
    for one, other in zip(given, wanted, strict=True):
        scale = max(1.0, np.abs(other).max())
        np.testing.assert_allclose(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


# ---------------------------------------------------------------------------------------------------------- a TreeLSTM
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
def test_treelstm_equals_the_recursive_program(shape, dtype, rng):
    children = SHAPES[shape]
    net = TreeLSTM(3, 5, dtype)
    data = rng.normal(size=(len(children), 3))
    tree = tree_of(children)
    wanted = values_and_gradients(lambda x: net.recursive(children, x), net, data)
    assert_close(values_and_gradients(lambda x: net(tree, x), net, data), wanted, dtype)
    for options in ({}, {"static_alloc": True}):
        net.hybridize(strict=True, **options)
        assert_close(values_and_gradients(lambda x: net(tree, x), net, data), wanted, dtype)


def test_one_graph_for_all_trees(rng):
    net = TreeLSTM(3, 4, "float64")
    net.hybridize(strict=True)
    for count in [1, 2, 3, 40, 7, *rng.integers(1, 30, size=12)]:
        children = random_tree(rng, int(count), roots=int(min(count, rng.integers(1, 4))))
        data, tree = rng.normal(size=(count, 3)), tree_of(children)
        wanted = values_and_gradients(lambda x, given=children: net.recursive(given, x), net, data)
        assert_close(values_and_gradients(lambda x, given=tree: net(given, x), net, data), wanted, "float64")
    assert len({id(graph) for variants in net._variants.values() for graph in variants.table.values()}) == 1


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_files_take_trees_of_other_sizes(dtype, rng, tmp_path):
    net = TreeLSTM(3, 5, dtype)
    net.hybridize(strict=True)
    net(tree_of(binary(3)), nd.array(rng.normal(size=(7, 3)), dtype=dtype))
    files = net.export(str(tmp_path / "net"))
    loaded = gluon.SymbolBlock.imports(files[0], ["data0", "data1", "data2"], files[1])
    for children in (*SHAPES.values(), random_tree(rng, 33)):
        data = rng.normal(size=(len(children), 3))
        states = loaded(*tree_of(children), nd.array(data, dtype=dtype))
        wanted = net.recursive(children, nd.array(data, dtype=dtype))
        assert_close([one.asnumpy() for one in states], [one.asnumpy() for one in wanted], dtype)


def test_many_random_trees(rng):
    """Sizes, depths, and sums with weights by position, in integers: equal to the last bit."""

    def fn(x, states, mask):
        mask = mask.expand_dims(axis=2)
        size, depth, code = [states[name] * mask for name in ("size", "depth", "code")]
        places = nd.arange(1, 41, dtype="float64").reshape((1, -1, 1))
        weights = nd.slice_like(nd.broadcast_mul(places, nd.ones_like(code[:, :1])), code, axes=(1,))
        return {
            "size": 1 + size.sum(axis=1),
            "depth": 1 + depth.max(axis=1),
            "code": (x + 3 * (code * weights).sum(axis=1)) % 1009,
        }

    class Net(gluon.HybridBlock):
        def forward(self, tree, x):
            zero = nd.zeros((1,), dtype="float64")
            return tree_fold(fn, tree, x, {"size": zero, "depth": zero, "code": zero})

    def recursive(children, data):
        rows = [None] * len(children)

        def visit(node):
            below = [visit(child) for child in children[node]]
            size = 1 + sum(one[0] for one in below)
            depth = 1 + max([one[1] for one in below], default=0)
            code = (data[node, 0] + 3 * sum((i + 1) * one[2] for i, one in enumerate(below))) % 1009
            rows[node] = (size, depth, code)
            return rows[node]

        for node in range(len(children)):
            visit(node)
        return np.array(rows)

    net = Net()
    net.hybridize(strict=True)
    for _ in range(300):
        count = int(rng.integers(1, 40))
        children = random_tree(rng, count, roots=int(rng.integers(1, min(count, 3) + 1)))
        data = rng.integers(0, 1000, size=(count, 1)).astype("float64")
        found = net(tree_of(children), nd.array(data, dtype="float64"))
        np.testing.assert_array_equal(
            np.concatenate([a.asnumpy() for a in found.values()], axis=1), recursive(children, data)
        )


# ------------------------------------------------------------------------------------------------ arguments, interfaces
def total(x, states, mask):
    return x + states.sum(axis=1)


def subtree_sums(children, values):
    below = lambda node: values[node] + sum(below(child) for child in children[node])  # noqa: E731
    return np.array([below(node) for node in range(len(children))])


def test_symbols(rng):
    children = random_tree(rng, 12)
    tree = mx.contrib.Tree(mx.sym.var("children"), mx.sym.var("levels"))
    found = tree_fold(total, tree, mx.sym.var("x"), mx.sym.var("init"))
    arrays, values = tree_of(children), rng.normal(size=(12, 3))
    result = found.eval(
        children=arrays.children, levels=arrays.levels, x=nd.array(values, dtype="float64"),
        init=nd.zeros((3,), dtype="float64"),
    )[0]  # fmt: skip
    np.testing.assert_allclose(result.asnumpy(), subtree_sums(children, values), rtol=1e-12)


@pytest.mark.parametrize("hybridized", [False, True])
def test_numpy_interface_with_scalar_states(hybridized, rng):
    class Net(gluon.HybridBlock):
        def forward(self, tree, x):
            def fn(x, states, mask):
                assert type(x) is type(states) is type(mask)
                assert isinstance(x, mx.np.ndarray)
                return x + (states * mask).sum(axis=1)

            return tree_fold(fn, tree, x, mx.np.zeros((), dtype="float64"))

    with mx.util.np_shape(True), mx.util.np_array(True):
        net = Net()
        if hybridized:
            net.hybridize(strict=True)
        for count in (1, 5, 14):
            children, values = random_tree(rng, count), rng.normal(size=count)
            found = net(tree_of(children), mx.np.array(values, dtype="float64"))
            assert isinstance(found, mx.np.ndarray)
            np.testing.assert_allclose(found.asnumpy(), subtree_sums(children, values), rtol=1e-12)


@pytest.mark.parametrize("hybridized", [False, True])
def test_tree_of_the_block_and_no_data(hybridized, rng):
    """A tree that is no input of the block is a constant of its graph."""
    children = random_tree(rng, 9)
    tree = tree_of(children)

    class Net(gluon.HybridBlock):
        def forward(self, init):
            return tree_fold(lambda x, states, mask: 1 + (states * mask.expand_dims(2)).sum(axis=1), tree, None, init)

    net = Net()
    if hybridized:
        net.hybridize(strict=True)
    np.testing.assert_array_equal(net(nd.zeros((2,))).asnumpy()[:, 1], subtree_sums(children, np.ones(9)))


def test_gradient_of_the_state_of_absent_children():
    children = [[1, 2], [3], [], [], [5], []]
    tree, init = tree_of(children), nd.array([2.0])
    init.attach_grad()
    with mx.autograd.record():
        sums = tree_fold(total, tree, nd.zeros((6, 1)), init)
    sums.backward()
    # Absent children per node: 0, 1, 2, 2, 1, 2; each counts in all ancestors, too.
    assert sums.asnumpy().ravel().tolist() == [10, 6, 4, 4, 6, 4]
    assert init.grad.asscalar() == 17


def test_padding_adds_no_nan_to_gradients():
    """Padding takes the values of a node of the same level: leaves hold 4, inner nodes 0, where sqrt has slope inf."""
    children = [[1, 2, 3], [4], [], [], []]
    values = nd.array([[0.0], [0.0], [4.0], [4.0], [4.0]])
    weight = nd.array([3.0])
    for array in (values, weight):
        array.attach_grad()

    def fn(x, states, mask):
        below = (states * mask.expand_dims(2)).sum(axis=1)
        return (weight * x + below).sqrt()

    with mx.autograd.record():
        states = tree_fold(fn, tree_of(children), values, nd.zeros((1,)))
    states.backward()
    assert np.isfinite(values.grad.asnumpy()).all()
    assert np.isfinite(weight.grad.asnumpy()).all()


def test_second_gradients(rng):
    children = random_tree(rng, 8)
    tree = tree_of(children)

    class Net(gluon.HybridBlock):
        def forward(self, tree, x):
            fn = lambda x, states, mask: (x + (states * states).sum(axis=1)).tanh()  # noqa: E731
            return tree_fold(fn, tree, x, nd.full((2,), 0.3, dtype="float64"))

    def second(net):
        x = nd.array(np.linspace(-0.4, 0.5, 16).reshape(8, 2), dtype="float64")
        x.attach_grad()
        with mx.autograd.record():
            first = mx.autograd.grad((net(tree, x) ** 2).sum(), [x], create_graph=True, retain_graph=True)[0]
            loss = (first * first).sum()
        loss.backward()
        return x.grad.asnumpy()

    net = Net()
    plain = second(net)
    net.hybridize(strict=True)
    np.testing.assert_allclose(second(net), plain, rtol=1e-10)


# ------------------------------------------------------------------------------------------------------ levels, misuse
@pytest.mark.parametrize(
    ("children", "shape"),
    [
        (chain(50), (50, 1)),
        (star(50), (2, 49)),
        (binary(5), (5, 16)),
        (caterpillar(100), (100, 2)),
        ([[1, *range(50, 100)], *[[i + 1] for i in range(1, 49)], [], *[[]] * 50], (50, 3)),
    ],
)
def test_levels_are_few_and_narrow(children, shape):
    levels = tree_of(children).levels.asnumpy()
    assert levels.shape == shape


def test_children_are_in_earlier_levels(rng):
    for _ in range(50):
        children = random_tree(rng, int(rng.integers(1, 60)), 1)
        tree = tree_of(children)
        levels = tree.levels.asnumpy()
        level_of = {node: row for row, nodes in enumerate(levels) for node in nodes if node < len(children)}
        assert sorted(node for node in levels.ravel() if node < len(children)) == list(range(len(children)))
        assert set(levels.ravel()) <= {*range(len(children)), len(children) + 1}
        assert all(level_of[child] < level_of[node] for node, own in enumerate(children) for child in own)


def test_a_node_may_have_several_parents():
    children = [[1, 2], [3], [3, 3], []]
    found = tree_fold(total, tree_of(children), nd.array([[1.0], [2], [3], [4]]), nd.zeros((1,)))
    assert found.asnumpy().ravel().tolist() == [18, 6, 11, 4]


@pytest.mark.parametrize(
    ("children", "kind", "text"),
    [
        ([], errors.ValueError, "there is no node"),
        ([[1], [0]], errors.ValueError, r"node \d is its own descendant.*-> "),
        ([[0]], errors.ValueError, "node 0 is its own descendant, got 0 -> 0"),
        ([[1], [2], [3], [1]], errors.ValueError, r"node [123] is its own descendant"),
        ([[], [2, 3], []], errors.ValueError, "child 1 of node 1: expected a number from 0 to 2, got 3"),
        ([[-1]], errors.ValueError, "child 0 of node 0: expected a number from 0 to 0, got -1"),
        ([[], [0.0]], errors.TypeError, "child 0 of node 1: expected an int, got a float"),
        ([[], [True]], errors.TypeError, "child 0 of node 1: expected an int, got a bool"),
        ([[], 0], errors.TypeError, "the children of node 1: expected a list of numbers of nodes, got 0"),
    ],
)
def test_wrong_children_name_the_node(children, kind, text):
    with pytest.raises(kind, match=text):
        tree_of(children)


def test_misuse():
    tree, x, init = tree_of([[1, 2], [], []]), nd.ones((3, 2)), nd.zeros((2,))
    with pytest.raises(errors.TypeError, match="fn must be a function"):
        tree_fold(None, tree, x, init)
    with pytest.raises(errors.TypeError, match="expected a Tree, got a int"):
        tree_fold(total, 3, x, init)
    with pytest.raises(errors.TypeError, match="at least one array"):
        tree_fold(total, tree, x, [])
    with pytest.raises(
        errors.ShapeError, match=r"data\['x'\]: expected 3 rows, one for each node, got float32\(4, 2\)"
    ):
        tree_fold(lambda x, states, mask: x["x"], tree, {"x": nd.ones((4, 2))}, init)
    with pytest.raises(errors.TypeError, match="another structure than init"):
        tree_fold(lambda x, states, mask: [x, x], tree, x, init)
    with pytest.raises(errors.ShapeError, match=r"the result of fn: expected float32\(2, 2\), got float32\(2, 1\)"):
        tree_fold(lambda x, states, mask: x[:, :1], tree, x, init)
    with pytest.raises(errors.DTypeError, match=r"expected float32\(2, 2\), got float64\(2, 2\)"):
        tree_fold(lambda x, states, mask: x.astype("float64"), tree, x, init)
