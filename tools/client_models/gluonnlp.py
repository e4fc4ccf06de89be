"""GluonNLP 0.10: the models of ``get_model``, and the blocks from which programs build their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gluonnlp as nlp
import mxnet as mx
from gluonnlp.model import train

from .subject import BlockSubject, Subject, random, whole

WORDS = 40
LENGTH, BATCH, UNITS = 7, 2, 16


def _vocabulary(**keywords: Any) -> Any:
    counter = nlp.data.count_tokens([f"word{number}" for number in range(WORDS)])
    return nlp.Vocab(counter, **keywords)


def _bert_vocabulary() -> Any:
    return nlp.vocab.BERTVocab(nlp.data.count_tokens([f"word{number}" for number in range(WORDS)]))


def _tokens() -> Any:
    """(batch, length)"""
    return whole(BATCH, LENGTH, below=WORDS)


def _lengths() -> Any:
    return mx.nd.array([LENGTH, LENGTH - 2])


def _bert(name: str) -> Subject:
    net, _ = nlp.model.get_model(name, vocab=_bert_vocabulary(), pretrained=False)
    segments, places = mx.nd.zeros((BATCH, LENGTH)), whole(BATCH, 3, below=LENGTH)
    return BlockSubject(net, _tokens(), segments, _lengths(), places)


def _roberta(name: str) -> Subject:
    net, _ = nlp.model.get_model(name, vocab=_bert_vocabulary(), pretrained=False)
    return BlockSubject(net, _tokens(), _lengths(), whole(BATCH, 3, below=LENGTH))


def _distilbert(name: str) -> Subject:
    net, _ = nlp.model.get_model(name, dataset_name=None, vocab=_bert_vocabulary(), pretrained=False)
    return BlockSubject(net, _tokens(), _lengths())


def _language_model(name: str) -> Subject:
    net, _ = nlp.model.get_model(name, vocab=_vocabulary(), pretrained=False)
    return _with_states(net)


def _with_states(net: Any) -> Subject:
    net.initialize(mx.init.Xavier())
    states = net.begin_state(batch_size=BATCH, func=mx.nd.zeros)
    return BlockSubject(net, _tokens().T, states, initialize=False)


def _elmo(name: str) -> Subject:
    net = nlp.model.get_model(name, pretrained=False)[0]
    net.initialize(mx.init.Xavier())
    states = net.begin_state(mx.nd.zeros, batch_size=BATCH)
    characters = whole(BATCH, LENGTH, 50, below=260)
    return BlockSubject(net, characters, states, mx.nd.ones((BATCH, LENGTH)), initialize=False)


def _transformer() -> Subject:
    """The same as ``transformer_en_de_512``, which cannot be made without downloading its vocabulary."""
    coders = nlp.model.transformer.get_transformer_encoder_decoder(
        num_layers=6, units=512, hidden_size=2048, num_heads=8, max_src_length=530, max_tgt_length=549
    )
    words = _vocabulary()
    net = nlp.model.translation.NMTModel(words, words, *coders, share_embed=True, embed_size=512, tie_weights=True)
    return BlockSubject(net, _tokens(), _tokens(), _lengths(), _lengths())


def _bert_encoder() -> Any:
    return nlp.model.BERTEncoder(num_layers=1, units=UNITS, hidden_size=32, num_heads=2, max_length=LENGTH)


def _classifier(kind: str) -> Subject:
    if kind == "bert":
        net = nlp.model.BERTModel(_bert_encoder(), WORDS, 2, UNITS, UNITS, use_decoder=False, use_classifier=False)
        classifier = nlp.model.BERTClassifier(net, 3)
        return BlockSubject(classifier, _tokens(), mx.nd.zeros((BATCH, LENGTH)), _lengths())
    net = nlp.model.RoBERTaModel(_bert_encoder(), WORDS, units=UNITS, embed_size=UNITS, use_decoder=False)
    return BlockSubject(nlp.model.RoBERTaClassifier(net, 3), _tokens(), _lengths())


def _attention(cell: Any) -> Subject:
    query, key = random(BATCH, 3, UNITS), random(BATCH, LENGTH, UNITS)
    return BlockSubject(cell, query, key, key, mx.nd.ones((BATCH, 3, LENGTH)))


def _multi_head() -> Subject:
    base = nlp.model.DotProductAttentionCell(scaled=True)
    return _attention(nlp.model.MultiHeadAttentionCell(base, UNITS, UNITS, UNITS, num_heads=2))


def _bilm(mode: str) -> Subject:
    sizes = {"proj_size": UNITS, "cell_clip": 3, "proj_clip": 3} if mode == "lstmpc" else {}
    hidden = 32 if sizes else UNITS
    encoder = nlp.model.BiLMEncoder(mode, num_layers=2, input_size=UNITS, hidden_size=hidden, **sizes)
    encoder.initialize(mx.init.Xavier())
    states = encoder.begin_state(mx.nd.zeros, batch_size=BATCH)
    return BlockSubject(encoder, random(LENGTH, BATCH, UNITS), states, mx.nd.ones((BATCH, LENGTH)), initialize=False)


def _sampled(kind: str) -> Subject:
    """Losses over some of the classes: (values, (sampled classes, expected counts), labels)."""
    net = getattr(nlp.model, kind)(WORDS, 5, UNITS)
    counts = mx.nd.ones((5,)) * 0.1, mx.nd.ones((BATCH,)) * 0.2
    sampled = whole(5, below=WORDS), *counts
    return BlockSubject(net, random(BATCH, UNITS), list(sampled), whole(BATCH, below=WORDS))


def _big_rnn_training() -> Subject:
    net = train.BigRNN(WORDS, UNITS, 32, 1, UNITS, 5)
    net.initialize(mx.init.Xavier())
    states = net.begin_state(batch_size=BATCH, func=mx.nd.zeros)
    counts = mx.nd.ones((5,)) * 0.1, mx.nd.ones((LENGTH * BATCH,)) * 0.2
    sampled = [whole(5, below=WORDS), *counts]
    return BlockSubject(net, _tokens().T, _tokens().T, states, sampled, initialize=False)


def _cache() -> Subject:
    model = nlp.model.StandardRNN("lstm", WORDS, UNITS, UNITS, 1, 0.0, True)
    model.initialize(mx.init.Xavier())
    cell = train.CacheCell(model, WORDS, window=3, theta=0.6, lambdas=0.2)
    states = model.begin_state(batch_size=1, func=mx.nd.zeros)
    words = whole(LENGTH, 1, below=WORDS)
    return BlockSubject(cell, words, words, None, None, states, initialize=False)


def _fasttext() -> Subject:
    tokens = {f"word{number}": number for number in range(WORDS)}
    hashes = nlp.vocab.create_subword_function("NGramHashes", num_subwords=20)
    net = train.FasttextEmbeddingModel(list(tokens), hashes, output_dim=UNITS)
    net.initialize(mx.init.Xavier())
    weights = mx.nd.ones((4,))
    words = mx.nd.sparse.csr_matrix((weights, mx.nd.array([0, 3, 5, 9]), mx.nd.array([0, 2, 4])), shape=(2, WORDS + 20))
    return BlockSubject(net, words, initialize=False)


def _csr_embedding() -> Subject:
    net = train.CSREmbeddingModel({f"word{number}": number for number in range(WORDS)}, UNITS)
    net.initialize(mx.init.Xavier())
    weights = mx.nd.ones((4,))
    words = mx.nd.sparse.csr_matrix((weights, mx.nd.array([0, 3, 5, 9]), mx.nd.array([0, 2, 4])), shape=(2, WORDS))
    return BlockSubject(net, words, initialize=False)


def _label_smoothing() -> Subject:
    class Smoothed(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.smooth = nlp.loss.LabelSmoothing(units=WORDS)
            self.dense = mx.gluon.nn.Dense(WORDS)
            self.loss = mx.gluon.loss.SoftmaxCELoss(sparse_label=False)

        def hybrid_forward(self, F: Any, values: Any, labels: Any) -> Any:
            return self.loss(self.dense(values), self.smooth(labels))

    return BlockSubject(Smoothed(), random(BATCH, UNITS), whole(BATCH, below=WORDS))


class _Decoder(mx.gluon.HybridBlock):
    """Scores of the next word after one word; states are (batch, units)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = mx.gluon.nn.Embedding(WORDS, UNITS)
        self.cell = mx.gluon.rnn.GRUCell(UNITS, input_size=UNITS)
        self.scores = mx.gluon.nn.Dense(WORDS, in_units=UNITS)

    def state_info(self, batch: int = 0) -> list[dict[str, Any]]:
        return [{"shape": (batch, UNITS), "__layout__": "NC"}]

    def hybrid_forward(self, F: Any, words: Any, states: Any) -> Any:
        values, states = self.cell(self.embedding(words), states)
        return F.log_softmax(self.scores(values)), states


class _Search(BlockSubject):
    """Sequences that a sampler draws with a decoder."""

    def __init__(self, sampler: Callable[..., Any]) -> None:
        states = [mx.nd.zeros((BATCH, UNITS))]
        super().__init__(_Decoder(), mx.nd.array([1, 2]), states)
        self.sampler = sampler(decoder=self.block, eos_id=0, max_length=LENGTH)

    def forward(self) -> list[Any]:
        mx.random.seed(1)
        return [array.asnumpy() for array in self.sampler(*self.arguments)]

    def hybridize(self) -> None:
        for block in (self.block, self.sampler):
            if isinstance(block, mx.gluon.HybridBlock):
                block.hybridize()


MODELS: dict[str, Callable[[], Subject]] = {
    **{name: partial(_bert, name) for name in ("bert_12_768_12", "bert_24_1024_16", "ernie_12_768_12")},
    **{name: partial(_roberta, name) for name in ("roberta_12_768_12", "roberta_24_1024_16")},
    "distilbert_6_768_12": partial(_distilbert, "distilbert_6_768_12"),
    **{
        name: partial(_language_model, name)
        for name in (
            "standard_lstm_lm_200",
            "standard_lstm_lm_650",
            "standard_lstm_lm_1500",
            "awd_lstm_lm_600",
            "awd_lstm_lm_1150",
            "big_rnn_lm_2048_512",
        )
    },
    **{
        f"elmo_{sizes}": partial(_elmo, f"elmo_{sizes}")
        for sizes in ("2x1024_128_2048cnn_1xhighway", "2x2048_256_2048cnn_1xhighway", "2x4096_512_2048cnn_2xhighway")
    },
    "transformer_en_de_512": _transformer,
    "BERTClassifier": partial(_classifier, "bert"),
    "RoBERTaClassifier": partial(_classifier, "roberta"),
    "MultiHeadAttentionCell": _multi_head,
    "DotProductAttentionCell": lambda: _attention(nlp.model.DotProductAttentionCell(UNITS, scaled=True)),
    "MLPAttentionCell": lambda: _attention(nlp.model.MLPAttentionCell(UNITS, normalized=True)),
    "BiLMEncoder-lstm": partial(_bilm, "lstm"),
    "BiLMEncoder-lstmpc": partial(_bilm, "lstmpc"),
    "ConvolutionalEncoder": lambda: BlockSubject(
        nlp.model.ConvolutionalEncoder(embed_size=UNITS), random(LENGTH, BATCH, UNITS), mx.nd.ones((LENGTH, BATCH))
    ),
    "Highway": lambda: BlockSubject(nlp.model.Highway(UNITS, 2), random(BATCH, UNITS)),
    "L2Normalization+GELU": lambda: BlockSubject(_normalized(), random(BATCH, UNITS)),
    **{kind: partial(_sampled, kind) for kind in ("ISDense", "NCEDense", "SparseISDense", "SparseNCEDense")},
    "train.AWDRNN": lambda: _with_states(train.AWDRNN("lstm", WORDS, UNITS, UNITS, 2, True, 0.2, 0.2, 0.2, 0.2, 0.2)),
    "train.StandardRNN": lambda: _with_states(train.StandardRNN("gru", WORDS, UNITS, UNITS, 2, 0.2, True)),
    "train.BigRNN": _big_rnn_training,
    "train.CacheCell": _cache,
    "train.CSREmbeddingModel": _csr_embedding,
    "train.FasttextEmbeddingModel": _fasttext,
    "LabelSmoothing": _label_smoothing,
    "BeamSearchSampler": lambda: _Search(partial(nlp.model.BeamSearchSampler, beam_size=3)),
    "HybridBeamSearchSampler": lambda: _Search(
        partial(nlp.model.HybridBeamSearchSampler, batch_size=BATCH, beam_size=3, vocab_size=WORDS)
    ),
    "SequenceSampler": lambda: _Search(partial(nlp.model.SequenceSampler, beam_size=3)),
}


def _normalized() -> Any:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(UNITS), nlp.model.GELU(), nlp.model.L2Normalization())
    return net
