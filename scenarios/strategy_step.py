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
# [[tool.harness.claim]]
# issue    = "T#60244"
# reported = "on the CPUs of one machine, a step of MirroredStrategy takes the longer the more workers there are"
# worse    = { environment = "tf2.9", strategy = "mirrored" }
# better   = { environment = "tf2.9", strategy = "none" }
# ratio    = [1.2, 10]              # no number; each worker has a batch of its own there, and a core here has them all
# when     = { replicas = "4" }
# hardware = "CPUs, Ubuntu 16.04"
# program  = "similar"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "T#60245"
# reported = "the same with MultiWorkerMirroredStrategy, whose workers are processes"
# worse    = { environment = "tf2.9", strategy = "multi_worker" }
# better   = { environment = "tf2.9", strategy = "none" }
# ratio    = [1.2, 20]              # as above
# when     = { replicas = "2" }
# hardware = "CPUs, Ubuntu 16.04"
# program  = "similar"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "T#57890"
# reported = "a step takes 4 s on one machine and 7 s on two with the same batch each, and more machines bring nothing"
# worse    = { environment = "tf2.9", strategy = "multi_worker" }
# better   = { environment = "tf2.9", strategy = "none" }
# ratio    = [1.4, 2.2]             # measured here on one machine, with half of the batch each
# when     = { replicas = "2" }
# hardware = "two machines; not reported which"
# program  = "similar"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "T#48374"
# reported = "MultiWorkerMirroredStrategy looks a lot slower than training on one machine, in 2.4"
# worse    = { environment = "tf2.4", strategy = "multi_worker" }
# better   = { environment = "tf2.4", strategy = "none" }
# ratio    = [1.5, 20]              # no number that could be read
# when     = { replicas = "2" }
# hardware = "not reported"
# program  = "similar"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "T#35095"
# reported = "training takes 286 s with MirroredStrategy on two devices, and 197 s on one"
# worse    = { environment = "tf2.2", strategy = "mirrored" }
# better   = { environment = "tf2.2", strategy = "none" }
# ratio    = [1.16, 1.8]            # by logical devices of a CPU; 2.1 has no public way to run a function on them
# when     = { replicas = "2" }
# hardware = "two GTX 1080 Ti"
# version  = "2.0"
# program  = "similar"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "T#33809"
# reported = "MirroredStrategy with two devices is much slower than one device, with the same batch"
# worse    = { environment = "tf2.2", strategy = "mirrored" }
# better   = { environment = "tf2.2", strategy = "none" }
# ratio    = [1.2, 5]               # no number that could be read
# when     = { replicas = "2" }
# hardware = "two GPUs"
# version  = "2.0"
# program  = "similar"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "T#35144"
# reported = "a step of MirroredStrategy with four devices takes about 3 times as long as with one"
# worse    = { environment = "tf2.2", strategy = "mirrored" }
# better   = { environment = "tf2.2", strategy = "none" }
# ratio    = [2.4, 3.8]             # each device has a batch of its own there
# when     = { replicas = "4" }
# hardware = "four Tesla V100"
# version  = "2.0"
# program  = "similar"
# visible  = ["cpu"]
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
    with start_workers(count if strategy == "multi_worker" else 1):
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


def make_mirrored(tf, count):
    """Return a strategy for this number of logical devices of the CPU."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.experimental.VirtualDeviceConfiguration()] * count
    tf.config.experimental.set_virtual_device_configuration(cpu, parts)
    return tf.distribute.MirroredStrategy(["CPU:{}".format(number) for number in range(count)])


def make_multi_worker(tf, count):
    """Return a strategy for the workers in TF_CONFIG."""
    # before 2.4, it is in `experimental`
    found = getattr(tf.distribute, "MultiWorkerMirroredStrategy", None)
    return (found or tf.distribute.experimental.MultiWorkerMirroredStrategy)()


STRATEGIES = {
    "none": lambda tf, count: tf.distribute.get_strategy(),
    "mirrored": make_mirrored,
    "multi_worker": make_multi_worker,
}


def make_step(tf, distribution):
    """Return a function that trains on the whole batch and returns the loss, and return the network's variables."""
    import numpy as np

    replicas = distribution.num_replicas_in_sync
    # all replicas have the whole batch, and each trains on its part
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
def start_workers(count):
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

        step, _ = make_step(tf, make_multi_worker(tf, len(addresses)))
        while True:
            step()
    except BaseException:  # noqa: BLE001, whatever it is, the output shows it
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main(scenario)
