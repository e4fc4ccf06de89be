"""Training on a cluster of Ray: Ray starts, watches and restarts the processes; gradients travel over ``mx.group``.

::

    def train(config):
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": config["rate"]}, kvstore="dist_sync")
        ...
        ray.train.report({"loss": loss}, checkpoint=ray.train.Checkpoint.from_directory(folder))

    result = hybridnet.ray.Trainer(train, num_workers=4, config={"rate": 0.1}, max_restarts=3).fit()

Ray is no dependency of the package: ``pip install "ray[train]"``.
"""

from .._public_names import dir_of
from ._trainer import Trainer

__all__ = ["Trainer"]

__dir__ = dir_of(__name__)
