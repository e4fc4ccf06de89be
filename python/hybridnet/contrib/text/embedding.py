"""Token embeddings: vectors of tokens from text files with one token per line."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import ndarray
from ..._files import read_lines
from ..._public_names import dir_of
from ..._user_line import warn
from ...base import data_dir
from ...errors import FileError, ParamError
from ...errors import KeyError as HybridNetKeyError
from ...ndarray import NDArray
from ._fasttext_files import FASTTEXT_FILES
from .vocab import UNKNOWN_IDX, TextError, Vocabulary

__all__ = [
    "CompositeEmbedding",
    "CustomEmbedding",
    "FastText",
    "GloVe",
    "create",
    "get_pretrained_file_names",
    "register",
]

_registry: dict[str, type[_TokenEmbedding]] = {}


def register(embedding_cls: type[_TokenEmbedding]) -> type[_TokenEmbedding]:
    """Class decorator that registers an embedding for create under its lower-case name."""
    _registry[embedding_cls.__name__.lower()] = embedding_cls
    return embedding_cls


def _known(embedding_name: str) -> type[_TokenEmbedding]:
    found = _registry.get(embedding_name.lower())
    if found is None:
        raise HybridNetKeyError(f"Cannot find embedding {embedding_name!r}, known: {', '.join(_registry)}")
    return found


def create(embedding_name: str, **kwargs: Any) -> _TokenEmbedding:
    """Creates an embedding by name: 'glove', 'fasttext', or a registered one. Raises KeyError for others."""
    return _known(embedding_name)(**kwargs)


def get_pretrained_file_names(embedding_name: str | None = None) -> Any:
    """Returns the names of files that an embedding (default: each, by name) reads. Raises KeyError for unknown ones."""
    if embedding_name is not None:
        return list(_known(embedding_name).pretrained_file_name_sha1)
    return {name: list(cls.pretrained_file_name_sha1) for name, cls in _registry.items()}


class _TokenEmbedding(Vocabulary):
    """A vocabulary with one vector per token."""

    # Files that the embedding reads, and their checksums if known.
    pretrained_file_name_sha1: dict[str, str] = {}
    namespace = ""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._vec_len = 0
        self._idx_to_vec: Any = None  # an NDArray once vectors are known

    @classmethod
    def _check_pretrained_file_names(cls, pretrained_file_name: str) -> None:
        if pretrained_file_name not in cls.pretrained_file_name_sha1:
            raise HybridNetKeyError(
                f"Cannot find pretrained file {pretrained_file_name} for token embedding {cls.__name__.lower()}, "
                f"known: {', '.join(cls.pretrained_file_name_sha1)}"
            )

    @classmethod
    def _get_pretrained_file(cls, embedding_root: str, pretrained_file_name: str) -> str:
        namespace = cls.namespace or cls.__name__.lower()
        path = os.path.join(os.path.expanduser(embedding_root), namespace, pretrained_file_name)
        if not os.path.exists(path):
            raise FileError(
                f"{cls.__name__}: there is no file '{path}'",
                because="vectors are not part of this package",
                fix="put the file there, or give embedding_root",
            )
        return path

    def _load_embedding(
        self,
        pretrained_file_path: str,
        elem_delim: str,
        init_unknown_vec: Callable[..., NDArray],
        encoding: str = "utf8",
    ) -> None:
        """Reads all vectors; appends new tokens of the file. Raises FileError, TextError."""
        path = os.path.expanduser(pretrained_file_path)
        vectors: list[list[float]] = []
        unknown: list[float] | None = None
        for number, line in enumerate(read_lines(path, "embedding", encoding), 1):
            token, values = self._read_line(line, number, elem_delim, len(vectors[0]) if vectors else None)
            if token == self.unknown_token and unknown is None:
                unknown = values
            elif token in self._token_to_idx:
                warn(f"line {number} of '{path}': token {token!r} is there already")
            elif len(values) > 1:
                vectors.append(values)
                self._token_to_idx[token] = len(self._idx_to_token)
                self._idx_to_token.append(token)
        self._vec_len = len(vectors[0]) if vectors else len(unknown or ())
        table = np.zeros((len(self), self._vec_len), np.float32)
        first = len(self) - len(vectors)
        table[:first] = init_unknown_vec(shape=(self._vec_len,)).asnumpy()
        if vectors:
            table[first:] = vectors
        if unknown is not None:
            table[UNKNOWN_IDX] = unknown
        self._idx_to_vec = ndarray.array(table)

    @staticmethod
    def _read_line(line: str, number: int, elem_delim: str, length: int | None) -> tuple[str, list[float]]:
        token, *texts = line.rstrip("\n").rstrip(elem_delim).split(elem_delim)
        if not texts:
            raise TextError(f"embedding: line {number} has no vector; is {elem_delim!r} between its elements?")
        try:
            values = [float(text) for text in texts]
        except ValueError as error:
            raise TextError(f"embedding: line {number}: {error}") from error
        # A first line of two numbers is a header of fastText.
        if length is not None and len(values) != length and len(values) > 1:
            raise TextError(f"embedding: line {number} has a vector of length {len(values)}, others have {length}")
        return token, values

    def _use_vocabulary(self, vocabulary: Vocabulary, embeddings: Sequence[_TokenEmbedding]) -> None:
        """Takes the tokens of vocabulary, with the concatenated vectors of embeddings."""
        if not isinstance(vocabulary, Vocabulary):
            raise TextError("embedding: vocabulary must be a Vocabulary", given=type(vocabulary).__name__)
        tokens = vocabulary.idx_to_token
        columns = [embedding.get_vecs_by_tokens(tokens).asnumpy().copy() for embedding in embeddings]
        for column, embedding in zip(columns, embeddings, strict=True):
            # The unknown token stays the unknown one, whatever its name is.
            column[UNKNOWN_IDX] = embedding.idx_to_vec[UNKNOWN_IDX].asnumpy()  # type: ignore[index]
        self._token_to_idx = dict(vocabulary.token_to_idx)
        self._idx_to_token = list(tokens)
        self._unknown_token = vocabulary.unknown_token
        self._reserved_tokens = vocabulary.reserved_tokens
        self._idx_to_vec = ndarray.array(np.concatenate(columns, axis=1))
        self._vec_len = self._idx_to_vec.shape[1]

    @property
    def vec_len(self) -> int:
        """The length of the vectors."""
        return self._vec_len

    @property
    def idx_to_vec(self) -> NDArray | None:
        """The vectors by number: (tokens, vec_len)."""
        return self._idx_to_vec

    def get_vecs_by_tokens(self, tokens: Any, lower_case_backup: bool = False) -> NDArray:
        """Returns vectors: (vec_len,) of a token, (n, vec_len) of a list; unknown tokens have the unknown token's.

        lower_case_backup: whether unknown tokens are also looked up in lower case.
        """
        single = not isinstance(tokens, list)
        numbers = [
            self._token_to_idx.get(token, self._token_to_idx.get(token.lower(), UNKNOWN_IDX))
            if lower_case_backup
            else self._token_to_idx.get(token, UNKNOWN_IDX)
            for token in ([tokens] if single else tokens)
        ]
        vectors = ndarray.Embedding(
            ndarray.array(numbers, dtype="int32"), self._idx_to_vec, input_dim=len(self), output_dim=self._vec_len
        )
        return vectors[0] if single else vectors

    def update_token_vectors(self, tokens: Any, new_vectors: NDArray) -> None:
        """Replaces vectors: one for a token, or (n, vec_len) for a list.

        Raises TextError if new_vectors has another shape, ParamError for unknown tokens.
        """
        listed = tokens if isinstance(tokens, list) else [tokens]
        fits = isinstance(new_vectors, NDArray) and new_vectors.size == len(listed) * self._vec_len
        if not fits or (new_vectors.ndim == 1 and len(listed) > 1) or new_vectors.ndim > 2:
            raise TextError(f"update_token_vectors: expected an NDArray of shape {(len(listed), self._vec_len)}")
        for token in listed:
            if token not in self._token_to_idx:
                raise ParamError(
                    f"Token {token} is unknown. To update the embedding vector for an unknown token, please specify it "
                    f"explicitly as the `unknown_token` {self.unknown_token}"
                )
        table = self._idx_to_vec.asnumpy().copy()
        table[[self._token_to_idx[token] for token in listed]] = new_vectors.asnumpy().reshape(len(listed), -1)
        self._idx_to_vec[:] = table


class _FileEmbedding(_TokenEmbedding):
    """Vectors of a published file in ``embedding_root/<namespace>``."""

    def __init__(
        self,
        pretrained_file_name: str,
        embedding_root: str | None = None,
        init_unknown_vec: Callable[..., NDArray] = ndarray.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        self._check_pretrained_file_names(pretrained_file_name)
        super().__init__(**kwargs)
        root = os.path.join(data_dir(), "embeddings") if embedding_root is None else embedding_root
        self._load_embedding(self._get_pretrained_file(root, pretrained_file_name), " ", init_unknown_vec)
        if vocabulary is not None:
            self._use_vocabulary(vocabulary, [self])


@register
class GloVe(_FileEmbedding):
    """GloVe vectors. Source: Pennington et al., 2014, https://nlp.stanford.edu/projects/glove.

    Parameters
    ----------
    pretrained_file_name : str, default 'glove.840B.300d.txt'
    embedding_root : str, default $HYBRIDNET_HOME/embeddings
        Folder of embeddings; the file is in its folder 'glove'.
    init_unknown_vec : callable, default mx.nd.zeros
        Vector of the unknown token.
    vocabulary : Vocabulary, optional
        Tokens to keep; default: all tokens of the file.

    Raises KeyError for unknown names, FileError if the file is missing.
    """

    namespace = "glove"
    pretrained_file_name_sha1 = dict.fromkeys(
        [
            "glove.42B.300d.txt",
            *(f"glove.6B.{size}d.txt" for size in (50, 100, 200, 300)),
            "glove.840B.300d.txt",
            *(f"glove.twitter.27B.{size}d.txt" for size in (25, 50, 100, 200)),
        ],
        "",
    )

    def __init__(self, pretrained_file_name: str = "glove.840B.300d.txt", **kwargs: Any) -> None:
        super().__init__(pretrained_file_name, **kwargs)


@register
class FastText(_FileEmbedding):
    """fastText vectors. Source: Bojanowski et al., arXiv 1607.04606, https://fasttext.cc.

    pretrained_file_name: default 'wiki.simple.vec'; other arguments: see GloVe, with folder 'fasttext'.
    """

    namespace = "fasttext"
    pretrained_file_name_sha1 = dict.fromkeys(FASTTEXT_FILES, "")

    def __init__(self, pretrained_file_name: str = "wiki.simple.vec", **kwargs: Any) -> None:
        super().__init__(pretrained_file_name, **kwargs)


class CustomEmbedding(_TokenEmbedding):
    """Vectors of a user-defined file, one token per line: ``hello 0.1 0.2 0.3``.

    Parameters
    ----------
    pretrained_file_path : str
    elem_delim : str, default ' '
        Separator of the token and the numbers.
    encoding : str, default 'utf8'
    init_unknown_vec : callable, default mx.nd.zeros
        Vector of the unknown token, unless the file has one.
    vocabulary : Vocabulary, optional
        Tokens to keep; default: all tokens of the file.

    Raises FileError, TextError.
    """

    def __init__(
        self,
        pretrained_file_path: str,
        elem_delim: str = " ",
        encoding: str = "utf8",
        init_unknown_vec: Callable[..., NDArray] = ndarray.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._load_embedding(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        if vocabulary is not None:
            self._use_vocabulary(vocabulary, [self])


class CompositeEmbedding(_TokenEmbedding):
    """Concatenates the vectors of several embeddings, for the tokens of a vocabulary.

    vocabulary: Vocabulary; token_embeddings: an embedding or a list of them. Raises TextError for others.
    """

    def __init__(self, vocabulary: Vocabulary, token_embeddings: Any) -> None:
        super().__init__()
        embeddings = token_embeddings if isinstance(token_embeddings, list) else [token_embeddings]
        if not all(isinstance(embedding, _TokenEmbedding) for embedding in embeddings):
            raise TextError("CompositeEmbedding: token_embeddings must be embeddings, such as CustomEmbedding")
        self._use_vocabulary(vocabulary, embeddings)


__dir__ = dir_of(__name__)
