# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Memory growth per model that is loaded and deleted"
# source = "https://github.com/tensorflow/tensorflow/issues/35524"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# format = ["saved_model", "h5", "plain", "json", "again"]
# model  = ["dense", "lookup"]
#
# [[tool.harness.exclude]]
# model  = "lookup"
# format = "h5"
# [[tool.harness.exclude]]
# model  = "lookup"
# format = "json"
#
# [[tool.harness.needs]]
# when     = { model = "lookup" }
# requires = ["tensorflow>=2.6"]
# reason   = "StringLookup is a layer from 2.6 on; before, it is experimental."
# [[tool.harness.needs]]
# when     = { format = "saved_model" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) can't load a SavedModel."
# advice   = "Use format=plain."
# [[tool.harness.needs]]
# when     = { format = "again" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) can't load a SavedModel."
# advice   = "Use format=plain."
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "memory growth"
#
# [[tool.harness.claim]]
# issue    = "T#35524"
# reported = "load_model of a SavedModel leaks in 2.1 and later, though the session is cleared"
# worse    = { environment = "tf2.1", format = "saved_model" }
# when     = { model = "dense" }
# bytes    = [200000, 5000000]      # no number that could be read; its weights have 0.4 MB
# of       = "memory growth"
# hardware = "a CPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#38217"
# reported = "load_model leaks in 2.0; a user found it fixed in 2.2.0rc3"
# worse    = { environment = "tf2.0", format = "saved_model" }
# when     = { model = "dense" }
# bytes    = [200000, 5000000]      # no number that could be read
# of       = "memory growth"
# hardware = "not reported"
# program  = "similar"
# fixed    = "2.2"
#
# [[tool.harness.claim]]
# issue    = "T#47122"
# reported = "load_model in an endless loop in 2.2 fills 4 GB in 40 minutes"
# worse    = { environment = "tf2.2", format = "saved_model" }
# when     = { model = "dense" }
# bytes    = [200000, 5000000]      # 1.7 MB a second, by a large model
# of       = "memory growth"
# hardware = "a virtual machine with 4 GB"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#27511"
# reported = "load_model of an h5 file leaks, though the session is cleared"
# worse    = { environment = "tf2.0", format = "h5" }
# when     = { model = "dense" }
# bytes    = [200000, 5000000]      # no number that could be read
# of       = "memory growth"
# hardware = "CPU, macOS, in Docker"
# version  = "2.0.0-alpha0"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#32234"
# reported = "saving and loading the same model again and again leaks in 2.0 until memory is full"
# worse    = { environment = "tf2.0", format = "again" }
# when     = { model = "dense" }
# bytes    = [200000, 20000000]     # no number that could be read
# of       = "memory growth"
# hardware = "GeForce GTX 1050 Ti"
# version  = "2.0.0-beta1"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#40171"
# reported = "tf.saved_model.load and del leak slowly in 2.2, and clear_session does not help"
# worse    = { environment = "tf2.2", format = "plain" }
# when     = { model = "dense" }
# bytes    = [200000, 5000000]      # "slow"
# of       = "memory growth"
# hardware = "Colab, and Docker"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#45453"
# reported = "tf.saved_model.load of the same model in an endless loop keeps memory in 2.4.0rc4"
# worse    = { environment = "tf2.4", format = "plain" }
# when     = { model = "dense" }
# bytes    = [200000, 5000000]      # no number that could be read
# of       = "memory growth"
# hardware = "V100"
# version  = "2.4.0rc4"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "TK#136"
# reported = "tf.saved_model.load of a model with a StringLookup of 100,000 words never releases memory in 2.12"
# worse    = { environment = "tf2.12", format = "plain" }
# when     = { model = "lookup" }
# bytes    = [1000000, 50000000]    # no number that could be read; a table of 100,000 words takes about 10 MB
# of       = "memory growth"
# hardware = "Ubuntu 22.04, in Docker"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "K#18386"
# reported = "the same issue in the Keras repository"
# worse    = { environment = "tf2.12", format = "plain" }
# when     = { model = "lookup" }
# bytes    = [1000000, 50000000]
# of       = "memory growth"
# hardware = "Ubuntu 22.04, in Docker"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#53435"
# reported = "saving and loading a model with lookup layers takes more memory each time in 2.6 and 2.7"
# worse    = { environment = "tf2.6", format = "again" }
# when     = { model = "lookup" }
# bytes    = [1000000, 100000000]   # no number that could be read
# of       = "memory growth"
# hardware = "CPU, CentOS 7"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#56095"
# reported = "a model with StringLookup takes more memory after each time it is loaded and saved, in 2.8"
# worse    = { environment = "tf2.8", format = "again" }
# when     = { model = "lookup" }
# bytes    = [1000000, 100000000]   # no number that could be read
# of       = "memory growth"
# hardware = "macOS, Intel"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "K#16542"
# reported = "the same issue in the Keras repository"
# worse    = { environment = "tf2.8", format = "again" }
# when     = { model = "lookup" }
# bytes    = [1000000, 100000000]
# of       = "memory growth"
# hardware = "macOS, Intel"
# program  = "similar"
# ///
"""The memory that the process keeps after loading 30 small or 8 large models. The session is cleared after each model.

format  saved_model, h5: `load_model` from a file of that format; plain: `tf.saved_model.load`; json: the model is made
        from JSON, which according to a user doesn't leak; again: the loaded model is saved, and the next model is
        loaded from that file
model   dense: 784 inputs, a dense layer of 128 units, dropout, and 10 outputs; lookup: a StringLookup of 100,000 words
"""

import gc
import itertools
import os
import tempfile

from kit import main

MODELS, WORDS = {"dense": 30, "lookup": 8}, 100000


def scenario(bench, *, format="saved_model", model="dense"):
    """Record the memory of the process over the models."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    folder = tempfile.mkdtemp()
    numbers = itertools.count()

    def next_path():
        return os.path.join(folder, "model{}".format(next(numbers)) + (".h5" if format == "h5" else ""))

    with bench.phase("build"):
        first = make_lookup(keras) if model == "lookup" else make_dense(keras)
        paths, text = [next_path()], first.to_json() if format == "json" else ""
    with bench.phase("save"):
        if format == "plain":
            tf.saved_model.save(first, paths[0])
        else:
            first.save(paths[0])
    del first

    def load():
        if format == "plain":
            loaded = tf.saved_model.load(paths[-1])
        elif format == "json":
            loaded = keras.models.model_from_json(text)
        else:
            loaded = keras.models.load_model(paths[-1], compile=False)
        if format == "again":
            paths.append(next_path())
            loaded.save(paths[-1])
        weights = len(loaded.variables) if hasattr(loaded, "variables") else 0
        del loaded
        keras.backend.clear_session()
        gc.collect()
        return weights

    with bench.phase("first call"):
        weights = load()
    bench.memory(load, MODELS[model])
    bench.fingerprint(weights=weights)


def make_dense(keras):
    """Return the model of the beginner's tutorial."""
    inputs = keras.layers.Input((28, 28))
    hidden = keras.layers.Dense(128, activation="relu")(keras.layers.Flatten()(inputs))
    return keras.models.Model(inputs, keras.layers.Dense(10, activation="softmax")(keras.layers.Dropout(0.2)(hidden)))


def make_lookup(keras):
    """Return a model that looks words up in a table."""
    inputs = keras.layers.Input((1,), dtype="string")
    words = keras.layers.StringLookup(vocabulary=[str(number) for number in range(WORDS)])(inputs)
    return keras.models.Model(inputs, words)


if __name__ == "__main__":
    main(scenario)
