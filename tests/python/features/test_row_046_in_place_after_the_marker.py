"""Row 46: rules in place stand behind the marker: one below 50 is rejected where it is registered."""

import hybridnet as mx
import pytest
from hybridnet import rewrite as rw


def test_a_rule_in_place_below_fifty_is_rejected() -> None:
    names = [row["name"] for row in rw.rows()]
    for place in ({"position": 49.0}, {"db": "fuse_chains"}):
        with pytest.raises(mx.base.MXNetError, match="50 or more"):
            rw.local(tracks=["relu"], name="over_its_input", in_place=True, **place)(lambda g, n: None)
    assert [row["name"] for row in rw.rows()] == names
    rw.local(tracks=["relu"], name="over_its_input", in_place=True, position=50.0)(lambda g, n: None)
    assert [row["name"] for row in rw.rows()][-1] == "over_its_input"
