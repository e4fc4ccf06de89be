"""Wrong values and habits of calling.

Sizes, devices, rates, labels, images and files that a layer or function does not take, and calls in the wrong order.
"""

from __future__ import annotations

from mistake import Mistake

NN = "import hybridnet as mx\nfrom hybridnet.gluon import nn"
DENSE = f"{NN}\nnet = nn.Dense(3, in_units=2)"
READY = f"{DENSE}\nnet.initialize()"
TRAINING = """\
import hybridnet as mx
from hybridnet import autograd, gluon
from hybridnet.gluon import nn
net = nn.Dense(3, in_units=2)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
data, label = mx.nd.ones((4, 2)), mx.nd.array([0, 1, 2, 0])
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()"""
LOSS = "import hybridnet as mx\nloss_fn = mx.gluon.loss.SoftmaxCrossEntropyLoss()"
IMAGE = """\
import hybridnet as mx
import numpy as np
from hybridnet.gluon.data.vision import transforms
image = np.zeros((28, 28, 3), "uint8")"""

ARRAYS = [
    Mistake(
        title="zeros with sizes as separate arguments",
        origin="torch",
        wrong="mx.nd.zeros(2, 3)",
        error="ParamError",
        says=["zeros: shape", "one tuple", "(2, 3)"],
        fixed="mx.nd.zeros((2, 3))",
    ),
    Mistake(
        title="ones with three sizes as separate arguments",
        origin="torch",
        wrong="mx.nd.ones(2, 3, 4)",
        error="ParamError",
        says=["ones: shape", "(2, 3, 4)"],
        fixed="mx.nd.ones((2, 3, 4))",
    ),
    Mistake(
        title="empty with sizes as separate arguments",
        origin="torch",
        wrong="mx.nd.empty(2, 3)",
        error="ParamError",
        says=["empty: shape", "(2, 3)"],
        fixed="mx.nd.empty((2, 3))",
    ),
    Mistake(
        title="A device named as in PyTorch",
        origin="torch",
        wrong="mx.nd.zeros((2, 3), ctx='cuda:0')",
        error="ValueError",
        says=["'cuda:0'", "mx.gpu(0)"],
        fixed="mx.nd.zeros((2, 3), ctx='cpu')",
    ),
]

LAYERS = [
    Mistake(
        title="Dense with the input size first",
        origin="torch",
        setup=NN,
        wrong="nn.Dense(784, 10)",
        error="ParamError",
        says=["Dense.activation", "got 10", "nn.Dense(10, in_units=784)"],
        fixed="nn.Dense(10, in_units=784)",
    ),
    Mistake(
        title="Dense with softmax as activation",
        origin="keras",
        setup=NN,
        wrong="nn.Dense(10, activation='softmax')",
        error="ParamError",
        says=["Dense.activation", "'softmax'", "SoftmaxCrossEntropyLoss"],
        fixed="nn.Dense(10)",
    ),
    Mistake(
        title="Dense with a function as activation",
        setup=NN,
        wrong="nn.Dense(10, activation=mx.nd.relu)",
        error="ParamError",
        says=["Dense.activation", "relu"],
        fixed="nn.Dense(10, activation='relu')",
    ),
    Mistake(
        title="An activation that is a layer of its own",
        origin="keras",
        setup=NN,
        wrong="nn.Dense(10, activation='gelu')",
        error="ParamError",
        says=["'gelu'", "nn.GELU()"],
        fixed="net = nn.HybridSequential()\nnet.add(nn.Dense(10), nn.GELU())",
    ),
    Mistake(
        title="Layer arguments without names",
        setup=NN,
        wrong="nn.Flatten(1, -1, True)",
        error="ParamError",
        says=["Flatten", "at most 2", "got 3"],
        fixed="nn.Flatten()",
    ),
    Mistake(
        title="A size that is a float",
        setup=NN,
        wrong="nn.Dense(128 / 2)",
        error="ParamError",
        says=["Dense.units", "64.0", "units=64"],
        fixed="nn.Dense(128 // 2)",
    ),
    Mistake(
        title="Sequential with layers in the constructor",
        origin="torch",
        setup=NN,
        wrong="net = nn.Sequential(nn.Dense(10), nn.Dense(2))",
        error="ParamError",
        says=["Sequential", "net.add("],
        fixed="net = nn.Sequential()\nnet.add(nn.Dense(10), nn.Dense(2))",
    ),
    Mistake(
        title="HybridSequential with a list of layers",
        origin="keras",
        setup=NN,
        wrong="net = nn.HybridSequential([nn.Dense(10), nn.Dense(2)])",
        error="ParamError",
        says=["HybridSequential", "net.add("],
        fixed="net = nn.HybridSequential()\nnet.add(nn.Dense(10), nn.Dense(2))",
    ),
    Mistake(
        title="HybridSequential with three layers in the constructor",
        origin="torch",
        setup=NN,
        wrong="net = nn.HybridSequential(nn.Dense(10), nn.Dense(5), nn.Dense(2))",
        error="ParamError",
        says=["HybridSequential", "3", "net.add("],
        fixed="net = nn.HybridSequential()\nnet.add(nn.Dense(10), nn.Dense(5), nn.Dense(2))",
    ),
    Mistake(
        title="add with the class of a layer",
        setup=f"{NN}\nnet = nn.HybridSequential()",
        wrong="net.add(nn.Flatten)",
        error="TypeError",
        says=["the class Flatten", "an instance"],
        fixed="net.add(nn.Flatten())",
    ),
    Mistake(
        title="add with a list of layers",
        setup=f"{NN}\nnet = nn.HybridSequential()\nlayers = [nn.Dense(10), nn.Dense(2)]",
        wrong="net.add(layers)",
        error="TypeError",
        says=["got a list", "net.add(*layers)"],
        fixed="net.add(*layers)",
    ),
    Mistake(
        title="add with a function",
        setup=f"{NN}\nnet = nn.HybridSequential()",
        wrong="net.add(lambda x: x * 2)",
        error="TypeError",
        says=["a function", "HybridLambda"],
        fixed="net.add(nn.HybridLambda(lambda F, x: x * 2))",
    ),
    Mistake(
        title="A model without super().__init__()",
        origin="torch",
        setup=NN,
        wrong="""\
class Net(mx.gluon.HybridBlock):
    def __init__(self):
        self.out = nn.Dense(10)

Net()""",
        error="TypeError",
        says=["Net: used before", "super().__init__()"],
        fixed="""\
class Net(mx.gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.out = nn.Dense(10)

Net()""",
    ),
    Mistake(
        title="BatchNorm with the number of channels",
        origin="torch",
        setup=NN,
        wrong="nn.BatchNorm(64)",
        error="ParamError",
        says=["BatchNorm.axis", "got 64", "nn.BatchNorm()"],
        fixed="nn.BatchNorm()",
    ),
    Mistake(
        title="LayerNorm with the number of features",
        origin="torch",
        setup=NN,
        wrong="nn.LayerNorm(768)",
        error="ParamError",
        says=["LayerNorm.axis", "got 768", "in_channels=768"],
        fixed="nn.LayerNorm(in_channels=768)",
    ),
    Mistake(
        title="LayerNorm with a shape",
        origin="torch",
        setup=NN,
        wrong="nn.LayerNorm([16])",
        error="ParamError",
        says=["LayerNorm.axis", "got [16]", "in_channels=16"],
        fixed="nn.LayerNorm(in_channels=16)",
    ),
    Mistake(
        title="GroupNorm with the number of channels",
        origin="torch",
        setup=NN,
        wrong="nn.GroupNorm(4, 16)",
        error="ParamError",
        says=["GroupNorm.epsilon", "got 16"],
        fixed="nn.GroupNorm(4)",
    ),
    Mistake(
        title="LSTM with the input size first",
        origin="torch",
        setup="from hybridnet.gluon import rnn",
        wrong="rnn.LSTM(10, 20)",
        error="ParamError",
        says=["num_layers", "got 20", "rnn.LSTM(20, input_size=10)"],
        fixed="rnn.LSTM(20, input_size=10)",
    ),
    Mistake(
        title="Conv2D with the input channels first",
        origin="torch",
        setup=NN,
        wrong="nn.Conv2D(3, 8, 3)",
        warns="write nn.Conv2D(8, kernel_size=3, in_channels=3)",
        fixed="nn.Conv2D(8, kernel_size=3, in_channels=3)",
    ),
    Mistake(
        title="Conv2D with a kernel of three sizes",
        setup=NN,
        wrong="nn.Conv2D(8, kernel_size=(3, 3, 3))",
        error="ParamError",
        says=["Conv2D.kernel_size", "(3, 3, 3)"],
        fixed="nn.Conv2D(8, kernel_size=(3, 3))",
    ),
    Mistake(
        title="A layout of another library",
        origin="keras",
        setup=NN,
        wrong="nn.Conv2D(8, kernel_size=3, layout='channels_last')",
        error="ParamError",
        says=["Conv2D.layout", "'NHWC'"],
        fixed="nn.Conv2D(8, kernel_size=3, layout='NHWC')",
    ),
    Mistake(
        title="Dropout with a rate in percent",
        setup=NN,
        wrong="nn.Dropout(50)",
        error="ParamError",
        says=["Dropout.rate", "got 50", "rate=0.5"],
        fixed="nn.Dropout(0.5)",
    ),
]

TRAINERS = [
    Mistake(
        title="A learning rate as text",
        setup=READY,
        wrong="mx.gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': '0.1'})",
        error="ParamError",
        says=["learning_rate", "'0.1'", "float"],
        fixed="mx.gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.1})",
    ),
    Mistake(
        title="A negative learning rate",
        setup=READY,
        wrong="mx.gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': -0.1})",
        error="ParamError",
        says=["learning_rate", "-0.1", "subtract"],
        fixed="mx.gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.1})",
    ),
    Mistake(
        title="A learning rate that is None",
        setup=READY,
        wrong="mx.gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': None})",
        error="ParamError",
        says=["learning_rate", "None"],
        fixed="mx.gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': 1e-3})",
    ),
    Mistake(
        title="A negative weight decay",
        setup=READY,
        wrong="mx.gluon.Trainer(net.collect_params(), 'sgd', {'wd': -1e-4})",
        error="ParamError",
        says=["wd", "-0.0001"],
        fixed="mx.gluon.Trainer(net.collect_params(), 'sgd', {'wd': 1e-4})",
    ),
    Mistake(
        title="An optimizer that does not exist",
        setup=READY,
        wrong="mx.gluon.Trainer(net.collect_params(), 'adamm')",
        error="ValueError",
        says=["adamm", "'adam'"],
        fixed="mx.gluon.Trainer(net.collect_params(), 'adam')",
    ),
    Mistake(
        title="The class of an optimizer",
        origin="torch",
        setup=READY,
        wrong="mx.gluon.Trainer(net.collect_params(), mx.optimizer.SGD)",
        error="ParamError",
        says=["the class SGD", "'sgd'"],
        fixed="mx.gluon.Trainer(net.collect_params(), mx.optimizer.SGD(learning_rate=0.1))",
    ),
    Mistake(
        title="step without the batch size",
        origin="torch",
        setup=TRAINING,
        wrong="""\
with autograd.record():
    loss = loss_fn(net(data), label)
loss.backward()
trainer.step()""",
        error="ParamError",
        says=["batch_size", "trainer.step(data.shape[0])"],
        fixed="""\
with autograd.record():
    loss = loss_fn(net(data), label)
loss.backward()
trainer.step(data.shape[0])""",
    ),
]

IMAGES = [
    Mistake(
        title="ToTensor with an image whose channels are first",
        origin="torch",
        setup=IMAGE,
        wrong="transforms.ToTensor()(image.transpose(2, 0, 1))",
        error="ShapeError",
        says=["ToTensor", "(height, width, channels)", "(3, 28, 28)", "transpose((1, 2, 0))"],
        fixed="transforms.ToTensor()(image)",
    ),
    Mistake(
        title="ToTensor with floating values",
        setup=IMAGE,
        wrong="transforms.ToTensor()((image + 255) / 255)",
        warns="ToTensor divides by 255",
        fixed="transforms.ToTensor()(image)",
    ),
    Mistake(
        title="Normalize before ToTensor",
        origin="torch",
        setup=IMAGE,
        wrong="transforms.Compose([transforms.Normalize(0.5, 0.5), transforms.ToTensor()])(image)",
        error="DTypeError",
        says=["Normalize", "uint8", "ToTensor() before Normalize"],
        fixed="transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])(image)",
    ),
    Mistake(
        title="Normalize with a float image whose channels are last",
        setup=IMAGE,
        wrong="transforms.Normalize((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))(image.astype('float32'))",
        error="ShapeError",
        says=["Normalize", "(28, 28, 3)", "ToTensor() before Normalize"],
        fixed="to_tensor = transforms.ToTensor()\n"
        "transforms.Normalize((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))(to_tensor(image))",
    ),
    Mistake(
        title="Normalize with three means for a gray image",
        setup=IMAGE,
        wrong="""\
gray = transforms.ToTensor()(image[:, :, :1])
transforms.Normalize((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))(gray)""",
        error="ShapeError",
        says=["Normalize", "(1, 28, 28)", "1 numbers"],
        fixed="""\
gray = transforms.ToTensor()(image[:, :, :1])
transforms.Normalize(0.5, 0.2)(gray)""",
    ),
    Mistake(
        title="Resize after ToTensor",
        setup=IMAGE,
        wrong="transforms.Compose([transforms.ToTensor(), transforms.Resize(14)])(image)",
        error="ShapeError",
        says=["Resize", "(3, 28, 28)", "before ToTensor"],
        fixed="transforms.Compose([transforms.Resize(14), transforms.ToTensor()])(image)",
    ),
    Mistake(
        title="A file name in place of an image",
        setup=IMAGE,
        wrong="transforms.Resize(14)('cat.png')",
        error="TypeError",
        says=["Resize", "got str", "mx.image.imread"],
        fixed="transforms.Resize(14)(image)",
    ),
    Mistake(
        title="A gray image without an axis of channels",
        setup=IMAGE,
        wrong="transforms.ToTensor()(mx.nd.zeros((28, 28), dtype='uint8'))",
        error="ShapeError",
        says=["ToTensor", "(28, 28)", "expand_dims(2)"],
        fixed="transforms.ToTensor()(mx.nd.zeros((28, 28), dtype='uint8').expand_dims(2))",
    ),
]

DEVICES = [
    Mistake(
        title="initialize with a device of PyTorch",
        origin="torch",
        setup=DENSE,
        wrong="net.initialize(ctx='cuda')",
        error="ValueError",
        says=["'cuda'", "mx.gpu(0)"],
        fixed="net.initialize(ctx='cpu')",
    ),
]


FORWARD = """\
class Net(mx.gluon.HybridBlock):
    def forward(self, x):
        return x * 2

net = Net()"""

CALLS = [
    Mistake(
        title="Two inputs for a layer of one",
        setup=READY,
        wrong="net(mx.nd.ones((4, 2)), mx.nd.ones((4, 2)))",
        error="ParamError",
        says=["Dense: inputs", "expected (x)", "2 inputs"],
        fixed="net(mx.nd.ones((4, 2)))",
    ),
    Mistake(
        title="No input for a layer",
        setup=READY,
        wrong="net()",
        error="ParamError",
        says=["Dense: inputs", "0 inputs", "net(x)"],
        fixed="net(mx.nd.ones((4, 2)))",
    ),
    Mistake(
        title="Two inputs for a model of one",
        setup=f"import hybridnet as mx\n{FORWARD}",
        wrong="net(mx.nd.ones((4, 2)), mx.nd.ones((4, 2)))",
        error="ParamError",
        says=["Net: inputs", "expected (x)"],
        fixed="net(mx.nd.ones((4, 2)))",
    ),
    Mistake(
        title="A Python list as input",
        setup=READY,
        wrong="net([[1, 2], [3, 4]])",
        error="ValueError",
        says=["got list", "mx.nd.array"],
        fixed="net(mx.nd.array([[1, 2], [3, 4]]))",
    ),
    Mistake(
        title="A NumPy array as input",
        setup=f"{READY}\nimport numpy as np",
        wrong="net(np.ones((4, 2)))",
        error="TypeError",
        says=["numpy.ndarray", "mx.nd.array(x)"],
        fixed="net(mx.nd.array(np.ones((4, 2))))",
    ),
    Mistake(
        title="A call before initialize",
        origin="torch",
        setup=DENSE,
        wrong="net(mx.nd.ones((4, 2)))",
        error="HybridNetError",
        says=["not been initialized", "net.initialize()"],
        fixed="net.initialize()\nnet(mx.nd.ones((4, 2)))",
    ),
    Mistake(
        title="Parameters read before the first batch",
        setup=f"{NN}\nnet = nn.Dense(3)\nnet.initialize()",
        wrong="net.weight.data()",
        error="DeferredInitializationError",
        says=["dense0_weight", "first forward pass", "net(data)"],
        fixed="net(mx.nd.ones((4, 2)))\nnet.weight.data()",
    ),
    Mistake(
        title="initialize for the second time",
        setup=READY,
        wrong="net.initialize(mx.init.Xavier())",
        warns="force_reinit=True",
        fixed="net.initialize(mx.init.Xavier(), force_reinit=True)",
    ),
    Mistake(
        title="initialize with a device as first argument",
        setup=DENSE,
        wrong="net.initialize(mx.cpu())",
        error="TypeError",
        says=["initializer", "got cpu(0)", "ctx=cpu(0)"],
        fixed="net.initialize(ctx=mx.cpu())",
    ),
    Mistake(
        title="initialize with the class of an initializer",
        origin="keras",
        setup=DENSE,
        wrong="net.initialize(mx.init.Xavier)",
        error="TypeError",
        says=["the class Xavier", "Xavier()"],
        fixed="net.initialize(mx.init.Xavier())",
    ),
    Mistake(
        title="A loop over a layer",
        setup=READY,
        wrong="for layer in net:\n    print(layer)",
        error="TypeError",
        says=["Dense", "Sequential"],
        fixed="for name, parameter in net.collect_params().items():\n    name, parameter.shape",
    ),
    Mistake(
        title="An index of a model that is no container",
        origin="torch",
        setup="""\
import hybridnet as mx
from hybridnet.gluon import nn

class Net(mx.gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.out = nn.Dense(10)

net = Net()""",
        wrong="net[0]",
        error="TypeError",
        says=["Net", "net.out"],
        fixed="net.out",
    ),
    Mistake(
        title="A layer that a container does not have",
        setup=f"{NN}\nnet = nn.HybridSequential()\nnet.add(nn.Dense(10), nn.Dense(2))",
        wrong="net[2]",
        error="IndexError",
        says=["layer 2", "2 layers", "net[-1]"],
        fixed="net[-1]",
    ),
    Mistake(
        title="export before the first call",
        setup=READY,
        wrong="net.export('net')",
        error="HybridNetError",
        says=["export", "net.hybridize()"],
        fixed="net.hybridize()\nnet(mx.nd.ones((4, 2)))\nnet.export('net')",
    ),
    Mistake(
        title="asnumpy in the forward of a hybridized model",
        origin="torch",
        setup="import hybridnet as mx",
        wrong="""\
class Net(mx.gluon.HybridBlock):
    def forward(self, x):
        return mx.nd.array(x.asnumpy() + 1)

net = Net()
net.hybridize()
net(mx.nd.ones((4, 2)))""",
        warns="runs imperatively",
        fixed="""\
class Net(mx.gluon.HybridBlock):
    def forward(self, x):
        return x + 1

net = Net()
net.hybridize()
net(mx.nd.ones((4, 2)))""",
    ),
    Mistake(
        title="asnumpy in hybrid_forward",
        origin="mxnet",
        setup="import hybridnet as mx",
        wrong="""\
class Net(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return mx.nd.array(x.asnumpy() + 1)

net = Net()
net.hybridize()
net(mx.nd.ones((4, 2)))""",
        error="NotImplementedForSymbol",
        says=["asnumpy()", "no values", "use operators"],
        fixed="""\
class Net(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return x + 1

net = Net()
net.hybridize()
net(mx.nd.ones((4, 2)))""",
    ),
]

SHAPES = [
    Mistake(
        title="A batch with another number of features",
        setup=READY,
        wrong="net(mx.nd.ones((4, 5)))",
        error="ShapeError",
        says=["input 'data': expected 2 features, got 5", "in_units=5"],
        fixed="net(mx.nd.ones((4, 2)))",
    ),
    Mistake(
        title="Gray images for a layer of color images",
        setup=f"{NN}\nnet = nn.Conv2D(8, kernel_size=3, in_channels=3)\nnet.initialize()",
        wrong="net(mx.nd.ones((4, 1, 28, 28)))",
        error="ShapeError",
        says=["input 'data': expected 3 input channels, got 1", "in_channels=1"],
        fixed="net(mx.nd.ones((4, 3, 28, 28)))",
    ),
    Mistake(
        title="Images with the channels last",
        origin="keras",
        setup=f"{NN}\nnet = nn.Conv2D(8, kernel_size=3, in_channels=3)\nnet.initialize()",
        wrong="net(mx.nd.ones((4, 28, 28, 3)))",
        error="ShapeError",
        says=["expected 3 input channels, got 28", "transpose((0, 3, 1, 2))"],
        fixed="net(mx.nd.ones((4, 28, 28, 3)).transpose((0, 3, 1, 2)))",
    ),
    Mistake(
        title="One image without the axis of the batch",
        setup=f"{NN}\nnet = nn.Conv2D(8, kernel_size=3)\nnet.initialize()",
        wrong="net(mx.nd.ones((3, 28, 28)))",
        error="ShapeError",
        says=["input 'data'", "4 dimensions", "(3, 28, 28)", "expand_dims(0)"],
        fixed="net(mx.nd.ones((3, 28, 28)).expand_dims(0))",
    ),
    Mistake(
        title="A matrix as image",
        setup=f"{NN}\nnet = nn.Conv2D(8, kernel_size=3)\nnet.initialize()",
        wrong="net(mx.nd.ones((28, 28)))",
        error="ShapeError",
        says=["4 dimensions", "(28, 28)", "reshape((1, 1, 28, 28))"],
        fixed="net(mx.nd.ones((28, 28)).reshape((1, 1, 28, 28)))",
    ),
    Mistake(
        title="Images smaller than the kernel",
        setup=f"{NN}\nnet = nn.Conv2D(8, kernel_size=7)\nnet.initialize()",
        wrong="net(mx.nd.ones((4, 3, 5, 5)))",
        error="ShapeError",
        says=["at least 7", "got 5", "padding"],
        fixed="net(mx.nd.ones((4, 3, 9, 9)))",
    ),
    Mistake(
        title="One sequence without the axis of the batch",
        setup="import hybridnet as mx\nnet = mx.gluon.rnn.LSTM(8)\nnet.initialize()",
        wrong="net(mx.nd.ones((5, 3)))",
        error="ShapeError",
        says=["(steps, batch, inputs)", "(5, 3)", "expand_dims(1)"],
        fixed="net(mx.nd.ones((5, 3)).expand_dims(1))",
    ),
    Mistake(
        title="BatchNorm over an axis that the data lacks",
        setup=f"{NN}\nnet = nn.BatchNorm(4)\nnet.initialize()",
        wrong="net(mx.nd.ones((8, 4)))",
        error="ParamError",
        says=["axis", "got 4", "nn.BatchNorm"],
        fixed="net = nn.BatchNorm()\nnet.initialize()\nnet(mx.nd.ones((8, 4)))",
    ),
    Mistake(
        title="Integers for a layer",
        setup=READY,
        wrong="net(mx.nd.ones((4, 2), dtype='int64'))",
        error="DTypeError",
        says=["input 'data': expected dtype float32, got int64", "astype('float32')"],
        fixed="net(mx.nd.ones((4, 2), dtype='int64').astype('float32'))",
    ),
    Mistake(
        title="NumPy's float64 for a layer",
        setup=f"{READY}\nimport numpy as np\nvalues = np.ones((4, 2))",
        wrong="net(mx.nd.array(values, dtype=values.dtype))",
        error="DTypeError",
        says=["input 'data': expected dtype float32, got float64", "astype('float32')"],
        fixed="net(mx.nd.array(values))",
    ),
]

LOSSES = [
    Mistake(
        title="A loss with swapped arguments",
        origin="keras",
        setup=LOSS,
        wrong="loss_fn(mx.nd.array([0, 1]), mx.nd.ones((2, 3)))",
        error="ShapeError",
        says=["label", "loss(pred, label)"],
        fixed="loss_fn(mx.nd.ones((2, 3)), mx.nd.array([0, 1]))",
    ),
    Mistake(
        title="One-hot labels",
        origin="keras",
        setup=LOSS,
        wrong="loss_fn(mx.nd.ones((2, 3)), mx.nd.array([[1, 0, 0], [0, 1, 0]]))",
        error="ShapeError",
        says=["label", "(2, 3)", "argmax", "sparse_label=False"],
        fixed="loss_fn(mx.nd.ones((2, 3)), mx.nd.array([[1, 0, 0], [0, 1, 0]]).argmax(axis=-1))",
    ),
    Mistake(
        title="Class indices for a loss of probabilities",
        setup="import hybridnet as mx\nloss_fn = mx.gluon.loss.SoftmaxCrossEntropyLoss(sparse_label=False)",
        wrong="loss_fn(mx.nd.ones((2, 3)), mx.nd.array([0, 1]))",
        error="ShapeError",
        says=["label", "(2, 3)", "(2,)"],
        fixed="loss_fn(mx.nd.ones((2, 3)), mx.nd.array([0, 1]).one_hot(3))",
    ),
    Mistake(
        title="More labels than predictions",
        setup=LOSS,
        wrong="loss_fn(mx.nd.ones((2, 3)), mx.nd.array([0, 1, 2]))",
        error="ShapeError",
        says=["label", "(2, 3)", "(3,)"],
        fixed="loss_fn(mx.nd.ones((3, 3)), mx.nd.array([0, 1, 2]))",
    ),
    Mistake(
        title="A label that is no class",
        setup=LOSS,
        wrong="loss_fn(mx.nd.ones((2, 3)), mx.nd.array([0, 3])).asnumpy()",
        warns="expected an integer from 0 to 2, got 3",
        fixed="loss_fn(mx.nd.ones((2, 3)), mx.nd.array([0, 2])).asnumpy()",
    ),
    Mistake(
        title="Arrays for the constructor of a loss",
        origin="torch",
        setup="import hybridnet as mx\nfrom hybridnet.gluon.loss import L2Loss",
        wrong="L2Loss(mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))",
        error="ParamError",
        says=["L2Loss", "L2Loss()"],
        fixed="L2Loss()(mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))",
    ),
    Mistake(
        title="Integer labels for a regression",
        setup="import hybridnet as mx\nfrom hybridnet.gluon.loss import L2Loss",
        wrong="L2Loss()(mx.nd.ones((2, 3)), mx.nd.ones((2, 3), dtype='int32'))",
        error="DTypeError",
        says=["int32", "float32", "astype('float32')"],
        fixed="L2Loss()(mx.nd.ones((2, 3)), mx.nd.ones((2, 3), dtype='int32').astype('float32'))",
    ),
    Mistake(
        title="backward of a loss that was not recorded",
        origin="torch",
        setup=TRAINING,
        wrong="loss = loss_fn(net(data), label)\nloss.backward()",
        error="GradientError",
        says=["recording", "autograd.record()"],
        fixed="with autograd.record():\n    loss = loss_fn(net(data), label)\nloss.backward()",
    ),
    Mistake(
        title="step without backward",
        setup=TRAINING,
        wrong="with autograd.record():\n    loss = loss_fn(net(data), label)\ntrainer.step(4)",
        error="UserWarning",
        says=["not been updated by backward", "loss.backward()"],
        fixed="with autograd.record():\n    loss = loss_fn(net(data), label)\nloss.backward()\ntrainer.step(4)",
    ),
    Mistake(
        title="backward for the second time",
        setup=TRAINING,
        wrong="""\
with autograd.record():
    loss = loss_fn(net(data), label)
loss.backward()
loss.backward()""",
        error="GradientError",
        says=["already used", "retain_graph=True"],
        fixed="""\
with autograd.record():
    loss = loss_fn(net(data), label)
loss.backward(retain_graph=True)
loss.backward()""",
    ),
    Mistake(
        title="A metric with swapped arguments",
        origin="torch",
        wrong="mx.metric.Accuracy().update(mx.nd.array([[0.1, 0.9], [0.8, 0.2]]), mx.nd.array([1, 0]))",
        error="ValueError",
        says=["labels", "update(labels, preds)"],
        fixed="mx.metric.Accuracy().update(mx.nd.array([1, 0]), mx.nd.array([[0.1, 0.9], [0.8, 0.2]]))",
    ),
]

OPERATORS = [
    Mistake(
        title="softmax with the axis as positional argument",
        origin="torch",
        wrong="mx.nd.ones((2, 3)).softmax(-1)",
        error="TypeError",
        says=["softmax", "softmax(axis=-1)"],
        fixed="mx.nd.ones((2, 3)).softmax(axis=-1)",
    ),
    Mistake(
        title="topk as a pair",
        origin="torch",
        wrong="values, indices = mx.nd.array([[3, 1, 2]]).topk(2)",
        error="ParamError",
        says=["topk", "ret_typ='both'"],
        fixed="values, indices = mx.nd.array([[3, 1, 2]]).topk(k=2, ret_typ='both')",
    ),
    Mistake(
        title="An array times text",
        wrong="mx.nd.ones((2, 3)) * '2'",
        error="TypeError",
        says=["a number or an array, not text"],
        fixed="mx.nd.ones((2, 3)) * 2",
    ),
    Mistake(
        title="reshape with sizes that do not divide",
        wrong="mx.nd.ones((6,)).reshape(7, -1)",
        error="ShapeError",
        says=["Reshape", "6 elements"],
        fixed="mx.nd.ones((6,)).reshape(3, -1)",
    ),
    Mistake(
        title="nd.reshape with sizes as separate arguments",
        origin="torch",
        wrong="mx.nd.reshape(mx.nd.ones((6,)), 2, 3)",
        error="ShapeError",
        says=["Reshape", "one tuple"],
        fixed="mx.nd.reshape(mx.nd.ones((6,)), (2, 3))",
    ),
    Mistake(
        title="reshape with a size that is a float",
        wrong="x = mx.nd.ones((6,))\nx.reshape(6 / 2, 2)",
        error="TypeError",
        says=["reshape", "3.0", "//"],
        fixed="x = mx.nd.ones((6,))\nx.reshape(6 // 2, 2)",
    ),
    Mistake(
        title="dot of matrices that do not fit",
        wrong="mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))",
        error="ShapeError",
        says=["dot", "(2, 3)", "transpose_b=True"],
        fixed="mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 3)), transpose_b=True)",
    ),
    Mistake(
        title="Arithmetic of floating and integer arrays",
        origin="torch",
        wrong="mx.nd.ones((2, 3)) + mx.nd.ones((2, 3), dtype='int64')",
        error="DTypeError",
        says=["float32", "int64", "cast the integers"],
        fixed="mx.nd.ones((2, 3)) + mx.nd.ones((2, 3), dtype='int64').astype('float32')",
    ),
    Mistake(
        title="Arithmetic of integer and floating arrays",
        wrong="mx.nd.ones((2, 3), dtype='int64') * mx.nd.ones((2, 3))",
        error="DTypeError",
        says=["cast the integers: .astype('float32')"],
        fixed="mx.nd.ones((2, 3), dtype='int64').astype('float32') * mx.nd.ones((2, 3))",
    ),
    Mistake(
        title="Arithmetic of float32 and float64",
        wrong="mx.nd.ones((2, 3)) + mx.nd.ones((2, 3), dtype='float64')",
        error="DTypeError",
        says=["float32", "float64", "cast one side"],
        fixed="mx.nd.ones((2, 3)) + mx.nd.ones((2, 3), dtype='float64').astype('float32')",
    ),
    Mistake(
        title="Shapes that do not broadcast",
        wrong="mx.nd.ones((2, 3)) + mx.nd.ones((2,))",
        error="ShapeError",
        says=["(2, 3)", "(2,)", "expand_dims"],
        fixed="mx.nd.ones((2, 3)) + mx.nd.ones((2,)).expand_dims(1)",
    ),
    Mistake(
        title="if on several elements",
        wrong="x = mx.nd.ones((2, 3))\nif x > 0:\n    print('positive')",
        error="ValueError",
        says=["(2, 3)", ".sum()"],
        fixed="x = mx.nd.ones((2, 3))\nif (x > 0).sum() > 0:\n    positive = True",
    ),
    Mistake(
        title="float of several elements",
        wrong="float(mx.nd.ones((2, 3)))",
        error="ValueError",
        says=["one element", "(2, 3)"],
        fixed="float(mx.nd.ones((2, 3)).mean())",
    ),
    Mistake(
        title="An array of rows of different lengths",
        wrong="mx.nd.array([[1, 2], [3]])",
        error="TypeError",
        says=["equal length", "different lengths", "pad the rows"],
        fixed="mx.nd.array([[1, 2], [3, 0]])",
    ),
    Mistake(
        title="An array of texts",
        wrong="mx.nd.array(['cat', 'dog'])",
        error="TypeError",
        says=["'cat'", "index of each word"],
        fixed="mx.nd.array([0, 1])",
    ),
    Mistake(
        title="concat of shapes that differ along another axis",
        wrong="mx.nd.concat(mx.nd.ones((2, 3)), mx.nd.ones((4, 3)))",
        error="ShapeError",
        says=["Concat", "(4, 3)", "dim="],
        fixed="mx.nd.concat(mx.nd.ones((2, 3)), mx.nd.ones((4, 3)), dim=0)",
    ),
    Mistake(
        title="stack of different shapes",
        wrong="mx.nd.stack(mx.nd.ones((2, 3)), mx.nd.ones((4, 3)))",
        error="ShapeError",
        says=["stack", "(4, 3)", "concat"],
        fixed="mx.nd.concat(mx.nd.ones((2, 3)), mx.nd.ones((4, 3)), dim=0)",
    ),
    Mistake(
        title="-1 as a size of ones",
        wrong="mx.nd.ones((-1, 3))",
        error="ParamError",
        says=["ones: shape", "(-1, 3)", "reshape"],
        fixed="mx.nd.ones((2, 3))",
    ),
    Mistake(
        title="An index that is a float",
        wrong="x = mx.nd.arange(4)\nx[4 / 2]",
        error="TypeError",
        says=["index", "2.0", "x[2]"],
        fixed="x = mx.nd.arange(4)\nx[4 // 2]",
    ),
    Mistake(
        title="An index array with fractions",
        wrong="x = mx.nd.arange(4)\nx[mx.nd.array([0.5, 1])]",
        error="TypeError",
        says=["index", "0.5", "astype('int64')"],
        fixed="x = mx.nd.arange(4)\nx[mx.nd.array([0.5, 1]).astype('int64')]",
    ),
    Mistake(
        title="An index beyond the end",
        wrong="x = mx.nd.arange(4)\nx[4]",
        error="IndexError",
        says=["index 4", "size 4", "-1 is the last"],
        fixed="x = mx.nd.arange(4)\nx[-1]",
    ),
    Mistake(
        title="A sum over an axis that does not exist",
        wrong="mx.nd.ones((2, 3)).sum(axis=2)",
        error="ParamError",
        says=["sum", "axis", "got 2", "-1"],
        fixed="mx.nd.ones((2, 3)).sum(axis=-1)",
    ),
    Mistake(
        title="Too many values for a slice",
        wrong="x = mx.nd.zeros((4,))\nx[0:2] = [1, 2, 3]",
        error="ShapeError",
        says=["assignment", "(2,)", "(3,)"],
        fixed="x = mx.nd.zeros((4,))\nx[0:3] = [1, 2, 3]",
    ),
    Mistake(
        title="A dtype that does not exist",
        origin="torch",
        wrong="mx.nd.ones((2, 3)).astype('flaot32')",
        error="DTypeError",
        says=["'flaot32'", "'float32'"],
        fixed="mx.nd.ones((2, 3)).astype('float32')",
    ),
]

FILES = [
    Mistake(
        title="Parameters from a folder",
        setup=f"{DENSE}\nimport os\nos.mkdir('model')",
        wrong="net.load_parameters('model')",
        error="FileError",
        says=["'model' is a folder", "name a file"],
        fixed="net.initialize()\nnet.save_parameters('model/net.params')\nnet.load_parameters('model/net.params')",
    ),
    Mistake(
        title="Parameters from a file of PyTorch",
        origin="torch",
        setup=f"{DENSE}\nimport pathlib\npathlib.Path('net.pt').write_bytes(b'PK\\x03\\x04' + bytes(60))",
        wrong="net.load_parameters('net.pt')",
        error="FormatError",
        says=["'net.pt'", "a PyTorch file", "numpy.savez"],
        fixed="import numpy as np\n"
        "np.savez('net.npz', weight=np.ones((3, 2), 'float32'), bias=np.ones(3, 'float32'))\n"
        "net.load_parameters('net.npz')",
    ),
    Mistake(
        title="Parameters from a pickle",
        origin="torch",
        setup=f"{DENSE}\nimport pathlib, pickle\npathlib.Path('net.pth').write_bytes(pickle.dumps([1, 2]))",
        wrong="net.load_parameters('net.pth')",
        error="FormatError",
        says=["'net.pth'", "a pickle", "numpy.savez"],
        fixed="net.initialize()\nnet.save_parameters('net.params')\nnet.load_parameters('net.params')",
    ),
    Mistake(
        title="Parameters from an empty file",
        setup=f"{DENSE}\nimport pathlib\npathlib.Path('net.params').touch()",
        wrong="net.load_parameters('net.params')",
        error="FormatError",
        says=["'net.params' is empty"],
        fixed="net.initialize()\nnet.save_parameters('net.params')\nnet.load_parameters('net.params')",
    ),
    Mistake(
        title="Parameters from a web page",
        setup=f"{DENSE}\nimport pathlib\n"
        "pathlib.Path('net.params').write_text('<!DOCTYPE html><html>Not Found</html>')",
        wrong="net.load_parameters('net.params')",
        error="FormatError",
        says=["'net.params'", "web page", "download"],
        fixed="net.initialize()\nnet.save_parameters('net.params')\nnet.load_parameters('net.params')",
    ),
    Mistake(
        title="Parameters from a dict",
        origin="torch",
        setup=DENSE,
        wrong="net.load_parameters({'weight': mx.nd.ones((3, 2))})",
        error="TypeError",
        says=["a file name", "dict"],
        fixed="net.initialize()\nnet.weight.set_data(mx.nd.ones((3, 2)))",
    ),
    Mistake(
        title="Parameters of another architecture",
        setup=f"{NN}\nold = nn.Dense(4, in_units=2)\nold.initialize()\nold.save_parameters('net.params')",
        wrong="nn.Dense(3, in_units=2).load_parameters('net.params')",
        error="ParameterLoadError",
        says=["(3, 2)", "(4, 2)"],
        fixed="nn.Dense(4, in_units=2).load_parameters('net.params')",
    ),
    Mistake(
        title="Parameters of a smaller network",
        setup=f"""\
{NN}
net = nn.HybridSequential()
net.add(nn.Dense(4, in_units=2))
net.initialize()
net.save_parameters('net.params')
net.add(nn.Dense(3, in_units=4))""",
        wrong="net.load_parameters('net.params')",
        error="ParameterLoadError",
        says=["'1.weight' is missing", "allow_missing=True"],
        fixed="net.load_parameters('net.params', allow_missing=True)",
    ),
    Mistake(
        title="save_parameters into a folder that does not exist",
        setup=READY,
        wrong="net.save_parameters('models/net.params')",
        error="FileError",
        says=["'models/net.params'", "folder exists"],
        fixed="import os\nos.mkdir('models')\nnet.save_parameters('models/net.params')",
    ),
    Mistake(
        title="save_parameters under the name of a folder",
        setup=f"{READY}\nimport os\nos.mkdir('models')",
        wrong="net.save_parameters('models')",
        error="FileError",
        says=["'models'", "name a file"],
        fixed="net.save_parameters('models/net.params')",
    ),
]

DATA = [
    Mistake(
        title="A DataLoader without the batch size",
        origin="torch",
        setup="import hybridnet as mx\nimport numpy as np\nfrom hybridnet.gluon.data import DataLoader",
        wrong="DataLoader(np.ones((8, 2)))",
        error="ParamError",
        says=["batch_size"],
        fixed="DataLoader(np.ones((8, 2)), batch_size=4)",
    ),
    Mistake(
        title="A batch size as text",
        setup="import hybridnet as mx\nimport numpy as np\nfrom hybridnet.gluon.data import DataLoader",
        wrong="DataLoader(np.ones((8, 2)), batch_size='4')",
        error="ParamError",
        says=["batch_size", "'4'"],
        fixed="DataLoader(np.ones((8, 2)), batch_size=4)",
    ),
    Mistake(
        title="A DataLoader of a generator",
        origin="torch",
        setup="import hybridnet as mx\nfrom hybridnet.gluon.data import DataLoader",
        wrong="DataLoader((number for number in range(8)), batch_size=4)",
        error="ParamError",
        says=["dataset", "generator", "list(samples)"],
        fixed="DataLoader(list(range(8)), batch_size=4)",
    ),
    Mistake(
        title="More labels than samples",
        setup="import hybridnet as mx\nimport numpy as np\nfrom hybridnet.gluon.data import ArrayDataset",
        wrong="ArrayDataset(np.ones((8, 2)), np.ones(9))",
        error="ParamError",
        says=["8", "9", "same length"],
        fixed="ArrayDataset(np.ones((8, 2)), np.ones(8))",
    ),
]

CASES = [
    *(*ARRAYS, *OPERATORS, *DEVICES, *LAYERS, *CALLS, *SHAPES),
    *(*LOSSES, *TRAINERS, *DATA, *IMAGES, *FILES),
]
