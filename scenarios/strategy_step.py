# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.2"]
#
# [tool.harness]
# title  = "One training step, distributed over devices and over workers"
# source = "https://www.tensorflow.org/tutorials/distribute/custom_training"
# tags   = ["distribution", "training"]
#
# [tool.harness.axes]
# strategy = ["none", "mirrored", "multi_worker"]
# replicas = ["2", "4"]
#
# [tool.harness.default]
# replicas = "2"
#
# [[tool.harness.needs]]
# devices = ["cpu"]
# reason  = "The devices are logical devices of a CPU, and the workers are processes on one machine."
#
# [[tool.harness.needs]]
# when     = { strategy = "multi_worker" }
# requires = ["tensorflow>=2.4"]
# reason   = "In TensorFlow 2.2 and 2.3, this strategy can't reduce a loss in a function on CPUs."
#
# [[tool.harness.compare]]
# name    = "mirrored vs none"
# along   = "strategy"
# plus    = "mirrored"
# against = "none"
# [[tool.harness.compare]]
# name    = "multi-worker vs none"
# along   = "strategy"
# plus    = "multi_worker"
# against = "none"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""One training step of a small convolutional network on a batch of 64 images, the same batch with each strategy.

strategy  none: the default strategy; mirrored: MirroredStrategy on logical devices of the CPU; multi_worker:
          MultiWorkerMirroredStrategy with one process per worker, which communicate over the loopback interface
replicas  the number of devices or workers that share the batch
"""

import json
import os
import signal
import socket
import sys
import traceback
from contextlib import contextmanager

from kit import digits, fixed_batch, fixed_weights, main

IMAGES, SIZE, CLASSES, RATE = 64, 32, 10, 0.01


def scenario(bench, *, strategy="none", replicas="2"):
    """Measure one step."""
    count = 1 if strategy == "none" else int(replicas)
    with workers(count if strategy == "multi_worker" else 1):
        with bench.phase("import"):
            import tensorflow as tf
        with bench.phase("strategy"):
            distribution = STRATEGIES[strategy](tf, count)
        bench.device()
        with bench.phase("build"):
            step, variables = make_step(tf, distribution)
        with bench.phase("first call"):
            losses = [float(bench.fetch(step()))]
        losses.append(float(step()))
        bench.measure(step)
        bench.placed(variables)
        bench.observe("replicas", int(distribution.num_replicas_in_sync))
        bench.fingerprint(losses=[digits(loss)[0] for loss in losses])


def mirrored(tf, count):
    """Return a strategy for this number of logical devices of the CPU."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.experimental.VirtualDeviceConfiguration()] * count
    tf.config.experimental.set_virtual_device_configuration(cpu, parts)
    return tf.distribute.MirroredStrategy(["CPU:{}".format(number) for number in range(count)])


def multi_worker(tf, count):
    """Return a strategy for the workers in TF_CONFIG."""
    # 2.4 gave it its name
    found = getattr(tf.distribute, "MultiWorkerMirroredStrategy", None)
    return (found or tf.distribute.experimental.MultiWorkerMirroredStrategy)()


STRATEGIES = {
    "none": lambda tf, count: tf.distribute.get_strategy(),
    "mirrored": mirrored,
    "multi_worker": multi_worker,
}


def make_step(tf, distribution):
    """Return a function that trains on the whole batch and returns its loss, and the variables of the network."""
    import numpy as np

    replicas = distribution.num_replicas_in_sync
    # all replicas have the whole batch, and each takes its own part of it
    x = np.stack(np.split(fixed_batch((IMAGES, SIZE, SIZE, 3), "float32"), replicas))
    y = np.stack(np.split(np.random.RandomState(1).randint(0, CLASSES, IMAGES), replicas)).astype("int32")
    layers = tf.keras.layers
    with distribution.scope():
        network = tf.keras.Sequential(
            [
                layers.Input((SIZE, SIZE, 3)),
                layers.Conv2D(32, 3, padding="same", activation="relu"),
                layers.Conv2D(64, 3, strides=2, padding="same", activation="relu"),
                layers.GlobalAveragePooling2D(),
                layers.Dense(CLASSES),
            ]
        )
        network.set_weights(fixed_weights([weight.shape for weight in network.get_weights()]))
        optimizer = tf.keras.optimizers.SGD(RATE)

    def on_replica():
        place = tf.distribute.get_replica_context().replica_id_in_sync_group
        with tf.GradientTape() as tape:
            logits = network(tf.gather(x, place), training=True)
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.gather(y, place), logits)
            loss = tf.reduce_sum(each) / IMAGES
        variables = network.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))  # noqa: B905, Python 3.6
        return loss

    @tf.function
    def step():
        return distribution.reduce(tf.distribute.ReduceOp.SUM, distribution.run(on_replica), axis=None)

    return step, network.trainable_variables


@contextmanager
def workers(count):
    """Start the other workers, each in a separate process, and end them after the block.

    A step waits for all workers, so each of them takes as many steps as this process.
    """
    sockets = [socket.socket() for _ in range(count)] if count > 1 else []
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = ["127.0.0.1:{}".format(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    children = []
    try:
        for index in range(1, len(addresses)):
            child = os.fork()
            if not child:
                work(addresses, index)
            children.append(child)
        if addresses:
            join(addresses, 0)
        yield
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def join(addresses, index):
    """Make this process a worker of the cluster."""
    task = {"type": "worker", "index": index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})


def work(addresses, index):
    """Take steps as another worker until the process is killed."""
    try:
        join(addresses, index)
        import tensorflow as tf

        step, _ = make_step(tf, multi_worker(tf, len(addresses)))
        while True:
            step()
    except BaseException:  # noqa: BLE001, whatever it is, the output shows it
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main(scenario)
