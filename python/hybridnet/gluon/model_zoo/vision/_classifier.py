"""Base of all networks of this folder: features, then output."""

from __future__ import annotations

from typing import Any

from ..._hybrid_block import HybridBlock
from .. import model_store

__all__ = ["Classifier", "load_pretrained"]


class Classifier(HybridBlock):
    """Computes ``output(features(x))``: x (N, 3, H, W) gives class scores (N, classes).

    features : HybridSequential, all layers before the classifier
    output : HybridBlock, the classifier
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.output(self.features(x))


def load_pretrained(net: HybridBlock, name: str, pretrained: bool, ctx: Any, root: str | None) -> Any:
    """Returns net, with published parameters if pretrained. Raises FileError if they are not on this machine."""
    if pretrained:
        net.load_parameters(model_store.get_model_file(name, root=root), ctx=ctx)
    return net
