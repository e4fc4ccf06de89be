"""Dive into Deep Learning, the book's package d2l 1.0 for MXNet: models, and training like in the book."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")  # the book's training plots curves

import matplotlib as mpl
import mxnet as mx
import numpy as np
from d2l import mxnet as d2l
from mxnet import gluon

from .subject import BlockSubject, Subject, arrays_in
from .subject import random as classic_random
from .subject import whole as classic_whole

mx.npx.set_np()  # the first statement of every program of the book

BATCH, STEPS, UNITS, WORDS = 2, 6, 8, 12


def _random(*shape: int) -> Any:
    return classic_random(*shape).as_np_ndarray()


def _whole(*shape: int, below: int = WORDS) -> Any:
    return classic_whole(*shape, below=below).as_np_ndarray()


LENGTHS = mx.np.array([STEPS, STEPS - 2])


def _block(block: Any, *arguments: Any) -> Subject:
    return BlockSubject(block, *arguments)


class _Fitted:
    """A model of the book, trained for one epoch by the book's own trainer."""

    def __init__(self, model: Any, data: Any, example: Any) -> None:
        self.model, self.data, self.example = model, data, example

    def forward(self) -> list[np.ndarray]:
        return [array.asnumpy() for array in arrays_in(self.model(*self.example))]

    def hybridize(self) -> None:
        self.model.hybridize()

    def train(self) -> None:
        self.model.board.display = False
        trainer = d2l.Trainer(max_epochs=1)
        trainer.fit(self.model, self.data)
        assert all(np.isfinite(array).all() for array in self.forward()), "results that are not finite"
        mpl.pyplot.close("all")


class _Arrays(d2l.DataModule):
    """A data set made of given arrays."""

    def __init__(self, *arrays: Any) -> None:
        super().__init__()
        self.arrays = arrays
        self.batch_size = 4

    def get_dataloader(self, train: bool) -> Any:
        return self.get_tensorloader(self.arrays, train)


def _linear(model: Any) -> Subject:
    data = d2l.SyntheticRegressionData(w=mx.np.array([2, -3.4]), b=4.2, num_train=32, num_val=32, batch_size=8)
    return _Fitted(model, data, (data.X[:4],))


def _images(model: Any, *shape: int) -> Subject:
    images = _random(8, *shape)
    return _Fitted(model, _Arrays(images, _whole(8, below=10).astype("int32")), (images,))


def _text(model: Any) -> Subject:
    words = _whole(8, STEPS).astype("int32")
    return _Fitted(model, _Arrays(words, words), (words,))


class _Decoder(d2l.Decoder):
    """The decoder of the book's chapter on sequence to sequence learning."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = gluon.nn.Embedding(WORDS, UNITS)
        self.rnn = d2l.GRU(UNITS, 2, 0)
        self.dense = gluon.nn.Dense(WORDS, flatten=False)
        self.initialize(mx.init.Xavier())

    def init_state(self, results: Any, *arguments: Any) -> Any:
        return results

    def forward(self, words: Any, state: Any) -> Any:
        embedded = self.embedding(d2l.transpose(words))
        outputs, hidden = state
        context = d2l.concat([outputs[-1][None]] * embedded.shape[0], 0)
        values, hidden = self.rnn(d2l.concat((embedded, context), -1), hidden)
        return d2l.swapaxes(self.dense(values), 0, 1), [outputs, hidden]


def _translation() -> Subject:
    model = d2l.Seq2Seq(d2l.Seq2SeqEncoder(WORDS, UNITS, UNITS, 2), _Decoder(), tgt_pad=0, lr=0.005)
    words = _whole(8, STEPS).astype("int32")
    lengths = mx.np.full((8,), STEPS)
    return _Fitted(model, _Arrays(words, words, lengths, words), (words, words, lengths))


def _attention() -> Subject:
    values = _random(BATCH, STEPS, UNITS)
    return _block(d2l.MultiHeadAttention(UNITS, 2, 0.1), values, values, values, LENGTHS)


def _bert() -> Subject:
    net = d2l.BERTModel(WORDS, UNITS, 16, 2, 1, 0.1, max_len=STEPS)
    words = _whole(BATCH, STEPS).astype("int32")
    return _block(net, words, mx.np.zeros_like(words), LENGTHS, _whole(BATCH, 2, below=STEPS).astype("int32"))


class _Detection(gluon.nn.Block):
    """Anchors, targets and detections of the book's chapter on vision, around one convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes = gluon.nn.Conv2D(4 * 4, kernel_size=3, padding=1)
        self.classes = gluon.nn.Conv2D(4 * 2, kernel_size=3, padding=1)

    def forward(self, images: Any, labels: Any) -> Any:
        anchors = d2l.multibox_prior(images, [0.5, 0.3], [1, 2, 0.5])
        offsets = self.boxes(images).transpose(0, 2, 3, 1).reshape(len(images), -1)
        scores = self.classes(images).transpose(0, 2, 3, 1).reshape(len(images), -1, 2)
        targets, masks, _ = d2l.multibox_target(anchors, labels)
        probabilities = mx.npx.softmax(scores).transpose(0, 2, 1)
        with mx.autograd.pause():
            found = d2l.multibox_detection(probabilities, offsets, anchors)
        return found, scores, (offsets - targets) * masks


def _detection() -> Subject:
    labels = mx.np.array([[[0, 0.1, 0.1, 0.5, 0.6]], [[0, 0.3, 0.2, 0.9, 0.9]]])
    return _block(_Detection(), _random(BATCH, 3, 4, 4), labels)


class _Projected(gluon.nn.Block):
    """A layer, followed by attention, which has no parameters of its own."""

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.attention = attention
        self.dense = gluon.nn.Dense(UNITS, flatten=False)

    def forward(self, queries: Any, *others: Any) -> Any:
        return self.attention(self.dense(queries), *others)


def _sequences(block: Any) -> Subject:
    return _block(block, _random(BATCH, STEPS, UNITS), LENGTHS)


MODELS: dict[str, Callable[[], Subject]] = {
    "LinearRegressionScratch": lambda: _linear(d2l.LinearRegressionScratch(2, lr=0.03)),
    "LinearRegression": lambda: _linear(d2l.LinearRegression(lr=0.03)),
    "SoftmaxRegression": lambda: _images(d2l.SoftmaxRegression(10, lr=0.1), 1, 8, 8),
    "LeNet": lambda: _images(d2l.LeNet(), 1, 28, 28),
    "RNNLMScratch": lambda: _text(d2l.RNNLMScratch(d2l.RNNScratch(WORDS, UNITS), WORDS, lr=1)),
    "RNNLM": lambda: _text(d2l.RNNLM(d2l.RNN(UNITS), WORDS, lr=1)),
    "RNNLM-GRU": lambda: _text(d2l.RNNLM(d2l.GRU(UNITS, 2), WORDS, lr=1)),
    "Seq2Seq": _translation,
    "Residual": lambda: _block(d2l.Residual(4, use_1x1conv=True, strides=2), _random(BATCH, 3, 6, 6)),
    "ResNeXtBlock": lambda: _block(d2l.ResNeXtBlock(32, 16, 1), _random(BATCH, 32, 6, 6)),
    "resnet18": lambda: _block(d2l.resnet18(10), _random(BATCH, 3, 32, 32)),
    "DotProductAttention": lambda: _block(
        _Projected(d2l.DotProductAttention(0.1)), *[_random(BATCH, STEPS, UNITS)] * 3, LENGTHS
    ),
    "AdditiveAttention": lambda: _block(
        d2l.AdditiveAttention(UNITS, 0.1), *[_random(BATCH, STEPS, UNITS)] * 3, LENGTHS
    ),
    "MultiHeadAttention": _attention,
    "PositionWiseFFN": lambda: _block(d2l.PositionWiseFFN(16, UNITS), _random(BATCH, STEPS, UNITS)),
    "AddNorm": lambda: _block(d2l.AddNorm(0.1), _random(BATCH, STEPS, UNITS), _random(BATCH, STEPS, UNITS)),
    "TransformerEncoderBlock": lambda: _sequences(d2l.TransformerEncoderBlock(UNITS, 16, 2, 0.1)),
    "TransformerEncoder": lambda: _block(
        d2l.TransformerEncoder(WORDS, UNITS, 16, 2, 2, 0.1), _whole(BATCH, STEPS), LENGTHS
    ),
    "BERTModel": _bert,
    "multibox": _detection,
}
