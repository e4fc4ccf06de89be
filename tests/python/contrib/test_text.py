"""contrib.text: counting tokens, vocabularies, vectors; datasets of running text; DataLoaderIter."""

from __future__ import annotations

from collections import Counter

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.contrib import text

COUNTER = Counter(["a", "b", "b", "c", "c", "c", "word$"])


@pytest.mark.parametrize("lower", [False, True])
def test_tokens_are_counted(lower):
    counted = text.utils.count_tokens_from_str(" Life is good \n life is . ", to_lower=lower)
    expected = {"is": 2, "good": 1, ".": 1, **({"life": 2} if lower else {"Life": 1, "life": 1})}
    assert counted == expected
    more = text.utils.count_tokens_from_str("isIStoISis", "IS", counter_to_update=Counter(is_=1))
    assert more == {"is_": 1, "is": 2, "to": 1}


@pytest.mark.parametrize(
    ("arguments", "tokens"),
    [
        ({}, ["<unk>", "c", "b", "a", "word$"]),
        ({"min_freq": 2}, ["<unk>", "c", "b"]),
        ({"most_freq_count": 2}, ["<unk>", "c", "b"]),
        ({"most_freq_count": 1, "min_freq": 2, "reserved_tokens": ["<pad>", "b"]}, ["<unk>", "<pad>", "b", "c"]),
        ({"unknown_token": "b", "min_freq": 2}, ["b", "c"]),
        ({"min_freq": 100}, ["<unk>"]),
    ],
)
def test_vocabularies_hold_the_most_frequent_tokens(arguments, tokens):
    vocab = text.vocab.Vocabulary(COUNTER, **arguments)
    assert vocab.idx_to_token == tokens and len(vocab) == len(tokens)
    assert vocab.token_to_idx == {token: i for i, token in enumerate(tokens)}
    assert vocab.unknown_token == tokens[0] and vocab.reserved_tokens == arguments.get("reserved_tokens")


def test_numbers_of_tokens_and_back():
    vocab = text.vocab.Vocabulary(COUNTER)
    assert vocab.to_indices("c") == 1 and vocab.to_indices(["a", "nothing", "b"]) == [3, 0, 2]
    assert vocab.to_tokens(1) == "c" and vocab.to_tokens([0, 3]) == ["<unk>", "a"]
    for wrong in (100, -1, "c"):
        with pytest.raises(ValueError, match="invalid"):
            vocab.to_tokens(wrong)
    for arguments in ({"min_freq": 0}, {"reserved_tokens": ["b", "b"]}, {"reserved_tokens": ["<unk>"]}):
        for kind in (ValueError, AssertionError):
            with pytest.raises(kind):
                text.vocab.Vocabulary(COUNTER, **arguments)


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("a 0.1 0.2\nb 0.6 0.7\n")
    return str(path)


def test_vectors_of_a_file(vectors, tmp_path):
    embedding = text.embedding.CustomEmbedding(vectors, init_unknown_vec=mx.nd.ones)
    assert embedding.idx_to_token == ["<unk>", "a", "b"] and embedding.vec_len == 2
    np.testing.assert_allclose(embedding.idx_to_vec.asnumpy(), [[1, 1], [0.1, 0.2], [0.6, 0.7]])
    np.testing.assert_allclose(embedding.get_vecs_by_tokens("A").asnumpy(), [1, 1])
    np.testing.assert_allclose(embedding.get_vecs_by_tokens("A", lower_case_backup=True).asnumpy(), [0.1, 0.2])
    np.testing.assert_allclose(embedding.get_vecs_by_tokens(["b", "q"]).asnumpy(), [[0.6, 0.7], [1, 1]])
    embedding.update_token_vectors(["a", "b"], mx.nd.array([[2, 2], [3, 3]]))
    embedding.update_token_vectors("<unk>", mx.nd.array([5, 5]))
    np.testing.assert_allclose(embedding.idx_to_vec.asnumpy(), [[5, 5], [2, 2], [3, 3]])
    with pytest.raises(ValueError, match="unknown"):
        embedding.update_token_vectors("q", mx.nd.array([0, 0]))
    for wrong in (mx.nd.array([0]), mx.nd.zeros((2, 2)), [0, 0]):
        with pytest.raises(AssertionError):
            embedding.update_token_vectors("a", wrong)
    header = tmp_path / "header.txt"
    header.write_text("2 2\na 1 2\n<u> 3 4\nb 5 6\n")
    other = text.embedding.CustomEmbedding(str(header), unknown_token="<u>")
    np.testing.assert_allclose(other.get_vecs_by_tokens(["a", "q"]).asnumpy(), [[1, 2], [3, 4]])


@pytest.mark.parametrize("content", ["a 1 2\nb\n", "a 1 2\nb 1 2 3\n", "a 1 x\n"])
def test_broken_files_of_vectors(tmp_path, content):
    path = tmp_path / "broken.txt"
    path.write_text(content)
    with pytest.raises(AssertionError, match="line"):
        text.embedding.CustomEmbedding(str(path))


def test_vectors_for_a_vocabulary(vectors):
    vocab = text.vocab.Vocabulary(COUNTER, min_freq=2, reserved_tokens=["<pad>", "a"])
    embedding = text.embedding.CustomEmbedding(vectors, vocabulary=vocab)
    assert embedding.idx_to_token == ["<unk>", "<pad>", "a", "c", "b"] and embedding.reserved_tokens == ["<pad>", "a"]
    expected = np.array([[0, 0], [0, 0], [0.1, 0.2], [0, 0], [0.6, 0.7]])
    np.testing.assert_allclose(embedding.idx_to_vec.asnumpy(), expected, rtol=1e-6)
    both = text.embedding.CompositeEmbedding(vocab, [embedding, text.embedding.CustomEmbedding(vectors)])
    assert both.vec_len == 4
    np.testing.assert_allclose(both.idx_to_vec.asnumpy(), np.tile(expected, 2), rtol=1e-6)
    with pytest.raises(AssertionError):
        text.embedding.CompositeEmbedding(vocab, [vocab])


def test_the_unknown_token_keeps_its_vector_under_any_name(vectors):
    vocab = text.vocab.Vocabulary(COUNTER, unknown_token="a", min_freq=2)
    embedding = text.embedding.CustomEmbedding(vectors, init_unknown_vec=mx.nd.ones, vocabulary=vocab)
    assert embedding.idx_to_token == ["a", "c", "b"]
    np.testing.assert_allclose(embedding.idx_to_vec.asnumpy(), [[1, 1], [1, 1], [0.6, 0.7]])


def test_published_vectors_lie_in_a_folder(tmp_path):
    folder = tmp_path / "glove"
    folder.mkdir()
    (folder / "glove.6B.50d.txt").write_text("the 1 2\nof 3 4\n")
    glove = text.embedding.create("GloVe", pretrained_file_name="glove.6B.50d.txt", embedding_root=str(tmp_path))
    np.testing.assert_array_equal(glove.get_vecs_by_tokens("of").asnumpy(), [3, 4])
    assert "glove.6B.50d.txt" in text.embedding.get_pretrained_file_names("glove")
    assert len(text.embedding.get_pretrained_file_names("fasttext")) == 327
    assert {"wiki.yi.vec", "wiki.multi.el.vec"} <= set(text.embedding.get_pretrained_file_names("fasttext"))
    assert set(text.embedding.get_pretrained_file_names()) >= {"glove", "fasttext"}
    with pytest.raises(mx.base.HybridNetError, match="embedding_root"):
        text.embedding.create("fasttext", embedding_root=str(tmp_path))
    for call in (lambda: text.embedding.create("nothing"), lambda: text.embedding.GloVe("glove.txt")):
        with pytest.raises(KeyError):
            call()


@pytest.mark.parametrize("kind", [gluon.contrib.data.text.WikiText2, gluon.contrib.data.text.WikiText103])
def test_running_text(tmp_path, kind):
    (tmp_path / "wiki.valid.tokens").write_text(" = A =\n\n b b c d\n")
    dataset = kind(str(tmp_path), "validation", seq_len=3)
    tokens = ["=", "A", "=", "<eos>", "b", "b", "c", "d", "<eos>"]
    numbers = dataset.vocabulary.to_indices(tokens)
    assert len(dataset) == 2 and dataset.frequencies["b"] == 2
    data, label = dataset[1]
    assert data.dtype == np.int32
    np.testing.assert_array_equal(data.asnumpy(), numbers[3:6])
    np.testing.assert_array_equal(label.asnumpy(), numbers[4:7])
    with pytest.raises(mx.base.HybridNetError, match="cannot read"):
        kind(str(tmp_path), "test")
    with pytest.raises(ValueError, match="segment"):
        kind(str(tmp_path), "all")


def test_interval_sampler_under_its_old_name():
    assert list(gluon.contrib.data.IntervalSampler(5, 2, rollover=False)) == [0, 2, 4]


def test_a_loader_feeds_a_module():
    data, label = np.random.rand(10, 3).astype("float32"), np.arange(10.0, dtype="float32") % 2
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(data, label), 4)
    it = mx.contrib.io.DataLoaderIter(loader, data_name="x")
    assert it.provide_data[0].name == "x" and it.provide_data[0].shape == (4, 3) and it.provide_label[0].shape == (4,)
    for _ in range(2):
        batches = list(it)
        assert [batch.pad for batch in batches] == [0, 0, 2]
        np.testing.assert_array_equal(batches[2].data[0].asnumpy(), np.concatenate([data[8:], np.zeros((2, 3))]))
        np.testing.assert_array_equal(batches[1].label[0].asnumpy(), label[4:8])
        it.reset()


def test_replace_file(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("1")
    new.write_text("2")
    gluon.utils.replace_file(str(new), str(old))
    assert old.read_text() == "2" and not new.exists()
