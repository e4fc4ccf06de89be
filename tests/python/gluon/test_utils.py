"""gluon.utils: splitting batches, clipping, checksums, downloading from local files."""

from __future__ import annotations

import hashlib

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import utils


def test_split_data_in_even_and_uneven_parts():
    data = mx.nd.arange(10).reshape((10, 1))
    assert [part.shape[0] for part in utils.split_data(data, 5)] == [2] * 5
    with pytest.raises(ValueError, match="cannot be evenly split into 3"):
        utils.split_data(data, 3)
    parts = utils.split_data(data, 3, even_split=False)
    assert [part.shape[0] for part in parts] == [4, 3, 3]
    np.testing.assert_array_equal(np.concatenate([part.asnumpy() for part in parts]), data.asnumpy())
    columns = utils.split_data(mx.nd.ones((2, 6)), 3, batch_axis=1)
    assert [part.shape for part in columns] == [(2, 2)] * 3


def test_split_and_load_puts_parts_on_contexts():
    contexts = [mx.cpu(0), mx.cpu(1)]
    parts = utils.split_and_load(np.arange(4.0).reshape(4, 1), contexts)
    assert [part.context for part in parts] == contexts
    assert parts[1].asnumpy().ravel().tolist() == [2, 3]
    assert utils.split_and_load([[1, 2]], [mx.cpu(0)])[0].shape == (1, 2)


@pytest.mark.parametrize("check", [True, False])
def test_clip_global_norm_scales_all_together(check):
    arrays = [mx.nd.array([3.0]), mx.nd.array([[4.0, 0.0]])]
    norm = utils.clip_global_norm(arrays, 1.0, check_isfinite=check)
    assert float(norm if check else norm.asscalar()) == pytest.approx(5)
    np.testing.assert_allclose(arrays[0].asnumpy(), [0.6], rtol=1e-5)
    np.testing.assert_allclose(arrays[1].asnumpy(), [[0.8, 0]], rtol=1e-5)
    utils.clip_global_norm(arrays, 10.0)
    np.testing.assert_allclose(arrays[0].asnumpy(), [0.6], rtol=1e-5)


def test_clip_global_norm_warns_about_infinite_values():
    with pytest.warns(UserWarning, match="nan or inf"):
        utils.clip_global_norm([mx.nd.array([np.inf])], 1.0)
    with pytest.raises(ValueError, match="empty"):
        utils.clip_global_norm([], 1.0)
    zeros = mx.nd.zeros((3,))
    assert utils.clip_global_norm([zeros], 1.0) == 0
    assert (zeros.asnumpy() == 0).all()


def test_checksums(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(b"content")
    digest = hashlib.sha1(b"content").hexdigest()
    assert utils.check_sha1(str(file), digest)
    assert not utils.check_sha1(str(file), "0" * 40)


def test_download_keeps_existing_files_and_reads_urls(tmp_path):
    source = tmp_path / "source.bin"
    source.write_bytes(b"content")
    digest = hashlib.sha1(b"content").hexdigest()
    folder = tmp_path / "into"
    folder.mkdir()
    path = utils.download(source.as_uri(), path=str(folder), sha1_hash=digest)
    assert path == str(folder / "source.bin")
    source.unlink()
    assert utils.download(source.as_uri(), path=str(folder), sha1_hash=digest) == path
    with pytest.raises(OSError, match=r"cannot download.*\n.*put it at"):
        utils.download(source.as_uri(), path=str(tmp_path / "other"), retries=0)
    assert not (tmp_path / "other").exists()
    with pytest.raises(ValueError, match="retries"):
        utils.download(source.as_uri(), retries=-1)


def test_the_default_context_is_an_attribute():
    assert mx.Context.default_ctx == mx.cpu()
    with mx.cpu(1):
        assert mx.Context.default_ctx == mx.cpu(1)
