"""Writes into memory that may be shared are refused with a fix that works (HN109)."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors, nd


class InLoop(mx.gluon.HybridBlock):
    def __init__(self, copies):
        super().__init__()
        self.copies = copies

    def forward(self, x, a):
        a = a * 1.0
        for d in x:
            if self.copies:
                a = a.copy()
            a[0] = d
            a = a * 0.5
        return a


class BehindBranch(InLoop):
    def forward(self, x, a):
        a = a * 1.0
        if x.sum() > 0:
            a = a * 2
        if self.copies:
            a = a.copy()
        a[0] = 7
        return a


@pytest.mark.parametrize("kind", [InLoop, BehindBranch])
def test_the_fix_for_a_write_into_memory_that_may_be_shared_works(kind):
    arguments = nd.ones((3, 2)), nd.ones((2, 2))
    want = kind(False)(*arguments).asnumpy()
    refused, mended = kind(False), kind(True)
    for net in (refused, mended):
        net.hybridize(strict=True)
    with pytest.raises(errors.TraceError, match=r"HN109.*\n.*\n.*\n  Fix: copy .* a = a\.copy\(\)\.") as caught:
        refused(*arguments)
    assert "Fix: copy the array right before this line" in str(caught.value)
    assert caught.value.fix.endswith("a = a.copy()")
    np.testing.assert_array_equal(mended(*arguments).asnumpy(), want)
