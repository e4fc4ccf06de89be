"""Calls of other libraries whose fix has another form.

Each fixed program also checks its values, so that a fix that runs and computes something else fails.
"""

from __future__ import annotations

from mistake import Mistake

_NN = "import hybridnet as mx\nfrom hybridnet.gluon import nn"
_X = "import hybridnet as mx\nx = mx.nd.arange(6).reshape((2, 3))"
_NET = f"{_NN}\nfrom hybridnet import autograd, gluon\nnet = nn.Dense(2, in_units=3)\nnet.initialize()"
_LIST = """\
import hybridnet as mx
from hybridnet.gluon import nn
class Net(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        {make}
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x"""
_SCALE = """\
import hybridnet as mx
from hybridnet.gluon import nn
class Scale(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.factor = self.params.get("factor", shape=(3,), init="ones")
    def forward(self, x):
        return {product}"""

ARRAYS = [
    Mistake("Values behind a mask", "y = x.masked_fill(x > 3, 0)",
            "mask = x > 3\ny = mx.nd.where(mask, mx.nd.zeros_like(x), x)\nassert y.sum().asscalar() == 6",
            "AttributeError", ["mx.nd.where(mask, mx.nd.zeros_like(x), x)"], setup=_X, origin="torch"),
    Mistake("Products of stacks of matrices", "y = mx.nd.bmm(x.expand_dims(0), x.T.expand_dims(0))",
            "y = mx.nd.batch_dot(x.expand_dims(0), x.T.expand_dims(0))\nassert y.shape == (1, 2, 2)",
            "AttributeError", ["mx.nd.batch_dot(a, b)"], setup=_X, origin="torch"),
    Mistake("The dot product of stacks of matrices", "y = mx.nd.dot(mx.nd.ones((2, 3, 4)), mx.nd.ones((2, 4, 5)))",
            "y = mx.nd.batch_dot(mx.nd.ones((2, 3, 4)), mx.nd.ones((2, 4, 5)))\nassert y.shape == (2, 3, 5)",
            "ShapeError", ["mx.nd.batch_dot(a, b)."], origin="torch"),
    Mistake("The dot product of stacks whose second one is transposed",
            "y = mx.nd.dot(mx.nd.ones((2, 3, 4)), mx.nd.ones((2, 5, 4)))",
            "y = mx.nd.batch_dot(mx.nd.ones((2, 3, 4)), mx.nd.ones((2, 5, 4)), transpose_b=True)\n"
            "assert y.shape == (2, 3, 5)",
            "ShapeError", ["mx.nd.batch_dot(a, b, transpose_b=True)"]),
    Mistake("Several columns at indices", "y = mx.nd.gather(x, 1, mx.nd.array([[2, 0], [1, 1]]))",
            'indices = mx.nd.array([[2, 0], [1, 1]], dtype="int64")\n'
            "y = mx.np.take_along_axis(x.as_np_ndarray(), indices.as_np_ndarray(), axis=1).as_nd_ndarray()\n"
            "assert y.asnumpy().tolist() == [[2, 0], [4, 4]]",
            "AttributeError", ["mx.np.take_along_axis"], setup=_X, origin="torch"),
    Mistake("A number of chunks", "parts = mx.nd.chunk(x, 2)",
            "parts = mx.nd.split(x, num_outputs=2, axis=0)\nassert [part.shape for part in parts] == [(1, 3), (1, 3)]",
            "AttributeError", ["num_outputs=2, axis=0", "number of chunks"], setup=_X, origin="torch"),
    Mistake("Two axes for transpose", "y = mx.nd.ones((2, 3, 4)).transpose(1, 2)",
            "y = mx.nd.ones((2, 3, 4)).swapaxes(1, 2)\nassert y.shape == (2, 4, 3)", "ParamError",
            ["x.swapaxes(1, 2)"], origin="torch"),
    Mistake("A choice between numbers", "y = mx.nd.where(x > 3, 1, x)",
            "condition = x > 3\ny = mx.nd.where(condition, mx.nd.full(condition.shape, 1), x)\n"
            "assert y.sum().asscalar() == 8", "TypeError", ["mx.nd.full(condition.shape, 1)"], setup=_X),
    Mistake("Axes for flatten", "y = x.flatten(0)", "y = x.reshape((-1,))\nassert y.shape == (6,)", "ParamError",
            ["expected no axes", "x.reshape((-1,))"], setup=_X, origin="torch"),
    Mistake("The last axes for flatten", "y = mx.nd.ones((2, 3, 4, 5)).flatten(2)",
            "y = mx.nd.ones((2, 3, 4, 5)).reshape((0, 0, -1))\nassert y.shape == (2, 3, 20)", "ParamError",
            ["x.reshape((0, 0, -1))"], origin="torch"),
    Mistake("The first axis of flatten as a keyword", "y = x.flatten(start_dim=1)",
            "y = x.flatten()\nassert y.shape == (2, 3)", "ParamError", ["write x.flatten()"], setup=_X, origin="torch"),
    Mistake("The counts of tile as separate arguments", "y = x.tile(2, 3)",
            "y = mx.nd.tile(x, reps=(2, 3))\nassert y.shape == (4, 9)", "TypeError", ["mx.nd.tile(x, reps=(2, 3))"],
            setup=_X, origin="torch"),
    Mistake("The order of a norm", "y = mx.nd.norm(x, p=2)", "y = mx.nd.norm(x, ord=2)", "ParamError", ["ord=..."],
            setup=_X, origin="torch"),
    Mistake("A descending order", "y = mx.nd.sort(x, descending=True)",
            "y = mx.nd.sort(x, is_ascend=False)\nassert y.asnumpy().tolist() == [[2, 1, 0], [5, 4, 3]]", "ParamError",
            ["is_ascend=False"], setup=_X, origin="torch"),
    Mistake("A sparse product of two types",
            'y = mx.nd.sparse.dot(x.astype("float64").tostype("csr"), mx.nd.ones((3, 2)))',
            'y = mx.nd.sparse.dot(x.astype("float64").tostype("csr"), mx.nd.ones((3, 2)).astype("float64"))',
            "DTypeError", [".astype('float64')"], setup=_X),
    Mistake("The gradient mode as a switch",
            "with autograd.set_grad_enabled(False):\n    y = net(mx.nd.ones((2, 3)))",
            "with autograd.pause():\n    y = net(mx.nd.ones((2, 3)))", "AttributeError",
            ["with autograd.pause()", "autograd.record()"], setup=_NET, origin="torch"),
]  # fmt: skip

LAYERS = [
    Mistake("A padding that keeps the size", 'layer = nn.Conv2D(8, 5, padding="same")',
            "layer = nn.Conv2D(8, 5, padding=5 // 2)\nlayer.initialize()\n"
            "assert layer(mx.nd.ones((1, 3, 9, 9))).shape == (1, 8, 9, 9)", "ParamError",
            ["padding=kernel_size // 2"], setup=_NN, origin="keras"),
    Mistake("No padding by its name", 'layer = nn.MaxPool2D(2, padding="valid")', "layer = nn.MaxPool2D(2, padding=0)",
            "ParamError", ["padding=0"], setup=_NN, origin="keras"),
    Mistake("Pooling that keeps an odd size", 'layer = nn.MaxPool2D(2, padding="same")',
            "layer = nn.MaxPool2D(2, ceil_mode=True)\nassert layer(mx.nd.ones((1, 3, 9, 9))).shape == (1, 3, 5, 5)",
            "ParamError", ["ceil_mode=True"], setup=_NN, origin="keras"),
    Mistake("The shape of the images", "layer = nn.Conv2D(8, 3, input_shape=(3, 8, 8))",
            "layer = nn.Conv2D(8, 3, in_channels=3)", "ParamError", ["in_channels=3"], setup=_NN, origin="keras"),
    Mistake("One sample without a batch", "y = net(mx.nd.ones((3,)))",
            "y = net(mx.nd.ones((3,)).expand_dims(0))\nassert y.shape == (1, 2)", "ShapeError",
            ["shape (batch, 3), got shape (3,)", "net(x.expand_dims(0))"], setup=_NET),
    Mistake("A dict as the batch", 'y = net({"x": mx.nd.ones((2, 3))})',
            'batch = {"x": mx.nd.ones((2, 3))}\ny = net(batch["x"])', "TypeError", ["got a dict", "net(batch['x'])"],
            setup=_NET, origin="keras"),
    Mistake("A list as the batch", "y = net([mx.nd.ones((2, 3))])",
            "arrays = [mx.nd.ones((2, 3))]\ny = net(*arrays)", "TypeError", ["got a list", "net(*arrays)"],
            setup=_NET, origin="keras"),
    Mistake("A shape for the summary", "net.summary((2, 3))", "net.summary(mx.nd.zeros((2, 3)))", "TypeError",
            ["net.summary(mx.nd.zeros((2, 3)))"], setup=_NET, origin="keras"),
    Mistake("The summary as a function", "mx.summary(net, (2, 3))", "net.summary(mx.nd.zeros((2, 3)))",
            "AttributeError", ["net.summary(x)"], setup=_NET, origin="torch"),
    Mistake("Layers in a list of Python",
            "net = Net()\nnet.collect_params().initialize()\ny = net(mx.nd.ones((2, 3)))",
            "net = Net()\nlayers = nn.HybridSequential()\nlayers.add(*net.layers)\nnet.layers = layers\n"
            "net.initialize()\nassert net(mx.nd.ones((2, 3))).shape == (2, 2)", "HybridNetError",
            ["self.layers, a list", "layers.add(*self.layers)"],
            setup=_LIST.format(make="self.layers = [nn.Dense(4), nn.Dense(2)]"), origin="torch"),
    Mistake("A layer whose forward has the name call",
            "class Twice(nn.HybridBlock):\n    def call(self, x):\n        return 2 * x\ny = Twice()(mx.nd.ones((2,)))",
            "class Twice(nn.HybridBlock):\n    def forward(self, x):\n        return 2 * x\n"
            "y = Twice()(mx.nd.ones((2,)))",
            "UnsupportedError", ["rename call(self, x) to forward(self, x)"], setup=_NN, origin="keras"),
    Mistake("Attention as a layer", "layer = nn.MultiHeadAttention(8, 2)",
            "q = k = v = mx.nd.ones((2, 5, 8))\ny = mx.nd.contrib.flash_attention(q, k, v)\n"
            "assert y.shape == (2, 5, 8)", "AttributeError", ["mx.nd.contrib.flash_attention"], setup=_NN),
    Mistake("A compiler as a function", "net = mx.jit.compile(net)", "net.hybridize()", "AttributeError",
            ["net.hybridize()"], setup=_NET, origin="torch"),
    Mistake("A weight for each class", "loss_fn = gluon.loss.SoftmaxCrossEntropyLoss(weight=mx.nd.array([1, 2]))\n"
            "loss = loss_fn(net(mx.nd.ones((2, 3))), mx.nd.array([0, 1]))",
            "weights, label = mx.nd.array([1, 2]), mx.nd.array([0, 1])\n"
            "loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()\n"
            "loss = loss_fn(net(mx.nd.ones((2, 3))), label, weights.take(label).expand_dims(1))\n"
            "assert loss.shape == (2,)", "ParamError",
            ["an array of shape (2,)", "weights.take(label).expand_dims(1)"], setup=_NET, origin="torch"),
    Mistake("The rate by its short name as a keyword of the trainer",
            'trainer = gluon.Trainer(net.collect_params(), "adam", lr=0.01)',
            'trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})', "ParamError",
            ['{"learning_rate": 0.01}'], setup=_NET, origin="torch"),
]  # fmt: skip

PARAMETERS = [
    Mistake("A value set in place of the method data", "net.weight.data = mx.nd.zeros((2, 3))",
            "net.weight.set_data(mx.nd.zeros((2, 3)))\nassert net.weight.data().sum().asscalar() == 0", "TypeError",
            ["net.weight.set_data(array)"], setup=_NET, origin="torch"),
    Mistake("A gradient set in place of the method grad", "net.weight.grad = mx.nd.zeros((2, 3))",
            "net.weight.grad()[:] = mx.nd.zeros((2, 3))", "TypeError", ["net.weight.grad()[:] = array"], setup=_NET,
            origin="torch"),
    Mistake("A rate of a parameter", "net.weight.lr = 0.1", "net.weight.lr_mult = 0.1", "AttributeError",
            ["param.lr_mult = 0.1"], setup=_NET, origin="torch"),
    Mistake("Hybridization as a flag", "net.hybridize = True", "net.hybridize()", "TypeError", ["call net.hybridize()"],
            setup=_NET),
    Mistake("A parameter in a product", "net = Scale()\nnet.initialize()\ny = net(mx.nd.ones((2, 3)))",
            _SCALE.format(product="x * self.factor.data()")
            + "\nnet = Scale()\nnet.initialize()\ny = net(mx.nd.ones((2, 3)))", "TypeError",
            ["used as an array", "self.weight.data()"], setup=_SCALE.format(product="x * self.factor"), origin="torch"),
    Mistake("A parameter in an operator", "y = mx.nd.dot(mx.nd.ones((4, 2)), net.weight)",
            "y = mx.nd.dot(mx.nd.ones((4, 2)), net.weight.data())", "TypeError", ["weight.data()"], setup=_NET,
            origin="torch"),
    Mistake("Values written to a parameter", "net.weight[:] = 0",
            "weight = net.weight\nweight.set_data(mx.nd.zeros(weight.shape))\n"
            "assert net.weight.data().sum().asscalar() == 0", "TypeError",
            ["weight.set_data(mx.nd.zeros(weight.shape))"], setup=_NET, origin="torch"),
    Mistake("A parameter added by a layer",
            'class Scale(nn.HybridBlock):\n    def __init__(self):\n        super().__init__()\n'
            '        self.w = self.add_weight(name="w", shape=(3,))\nnet = Scale()',
            'class Scale(nn.HybridBlock):\n    def __init__(self):\n        super().__init__()\n'
            '        self.w = self.params.get("w", shape=(3,))\nnet = Scale()', "AttributeError",
            ["self.params.get(name, shape=shape)"], setup=_NN, origin="keras"),
]  # fmt: skip

CASES = [*ARRAYS, *LAYERS, *PARAMETERS]
