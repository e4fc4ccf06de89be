"""Automatic mixed precision: products in 16 bits, operators that need range or accuracy in 32.

Call ``amp.init()`` once, before networks run; then ``amp.init_trainer(trainer)``; then losses are scaled so that small
gradients do not underflow::

    with autograd.record():
        loss = loss_function(net(data), label)
        with amp.scale_loss(loss, trainer) as scaled:
            autograd.backward(scaled)
    trainer.step(batch_size)
"""

from ..._public_names import dir_of
from ._convert import *
from .amp import *
from .loss_scaler import *

__dir__ = dir_of(__name__)
