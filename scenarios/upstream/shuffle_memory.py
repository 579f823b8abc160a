# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Memory growth per epoch of a shuffled dataset"
# source = "https://github.com/tensorflow/tensorflow/issues/44176"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# loop = ["eager", "graph", "fit", "deleted"]
#
# [[tool.harness.needs]]
# when     = { loop = "eager" }
# requires = ["tensorflow>=2.0"]
# reason   = "In TensorFlow 1, datasets are iterated over in a session."
# advice   = "Use loop=graph."
# [[tool.harness.needs]]
# when     = { loop = "fit" }
# requires = ["tensorflow>=2.0"]
# reason   = "In TensorFlow 1, datasets are iterated over in a session."
# advice   = "Use loop=graph."
# [[tool.harness.needs]]
# when     = { loop = "deleted" }
# requires = ["tensorflow>=2.0"]
# reason   = "In TensorFlow 1, datasets are iterated over in a session."
# advice   = "Use loop=graph."
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "memory growth"
#
# [[tool.harness.claim]]
# issue    = "T#44176"
# reported = "the shuffle buffer is kept when the next epoch opens a new iterator (a maintainer could not reproduce it)"
# worse    = { environment = "tf2.3", loop = "eager" }
# bytes    = [14000000, 43000000]   # the buffer: 200 elements of 144 kB
# of       = "memory growth"
# hardware = "GTX 2080 Ti"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#44176"
# reported = "the same with Model.fit instead of a loop"
# worse    = { environment = "tf2.3", loop = "fit" }
# bytes    = [14000000, 43000000]
# of       = "memory growth"
# hardware = "GTX 2080 Ti"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#34942"
# reported = "shuffle does not release its buffer after an epoch in 1.15 (a maintainer could not reproduce it)"
# worse    = { environment = "tf1.15", loop = "graph" }
# bytes    = [14000000, 43000000]
# of       = "memory growth"
# hardware = "not reported"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#35132"
# reported = "memory grows after each epoch in 1.12 and 1.15, probably by the buffer of shuffle"
# worse    = { environment = "tf1.15", loop = "graph" }
# bytes    = [14000000, 43000000]
# of       = "memory growth"
# hardware = "GeForce RTX 2080 Ti, Ubuntu 16.04"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#28759"
# reported = "the buffer of shuffle is not released when the dataset is deleted, and the next dataset needs its own"
# worse    = { environment = "tf2.0", loop = "deleted" }
# bytes    = [14000000, 43000000]   # 30 % of the memory, with 1,000 images
# of       = "memory growth"
# hardware = "not reported, on a GPU"
# version  = "2.0.0-alpha0"
# program  = "similar"
# ///
"""The memory growth per epoch over 250 elements of a generator, each 300 × 120 floats. Buffer of 200, batches of 25.

loop  eager: a new iterator over the same dataset for each epoch; graph: an initializable iterator in a session; fit:
      one epoch of `fit` with a dense layer; deleted: one epoch of `fit` with a new dataset, which is then deleted
"""

from kit import main

EPOCHS, ELEMENTS, BUFFER, BATCH, SHAPE = 21, 250, 200, 25, (300, 120)


def scenario(bench, *, loop="eager"):
    """Record the memory of the process over the epochs."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
        v1 = tf.compat.v1
        if loop == "graph" and tf.executing_eagerly():
            v1.disable_eager_execution()
    bench.device()

    def generate():
        for _ in range(ELEMENTS):
            yield np.random.randn(*SHAPE), np.ones(1)

    def make_dataset():
        dataset = tf.data.Dataset.from_generator(generate, (tf.float32, tf.float32), (SHAPE, (1,)))
        return dataset.shuffle(BUFFER).batch(BATCH, drop_remainder=True)

    with bench.phase("build"):
        dataset = make_dataset()
        if loop == "graph":
            iterator = v1.data.make_initializable_iterator(dataset)
            element, session = iterator.get_next(), v1.Session()
        elif loop != "eager":
            model = keras.models.Sequential([keras.layers.Flatten(input_shape=SHAPE), keras.layers.Dense(1)])
            model.compile(optimizer="sgd", loss="mse")

    def iterate():
        return sum(1 for _ in dataset)

    def run():
        session.run(iterator.initializer)
        batches = 0
        try:
            while True:
                session.run(element)
                batches += 1
        except tf.errors.OutOfRangeError:
            return batches

    def fit():
        model.fit(dataset if loop == "fit" else make_dataset(), epochs=1, verbose=0)
        return ELEMENTS // BATCH

    step = {"eager": iterate, "graph": run}.get(loop, fit)
    with bench.phase("first call"):
        batches = step()
    bench.memory(step, EPOCHS)
    bench.fingerprint(batches=batches)


if __name__ == "__main__":
    main(scenario)
