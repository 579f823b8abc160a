# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "The first of many models in a process, and a later one"
# source = "https://github.com/keras-team/keras/issues/3265"
# tags   = ["upstream", "training"]
#
# [tool.harness.axes]
# work = ["build", "recompile", "retrain"]
# turn = ["first", "later"]
#
# [[tool.harness.compare]]
# name    = "later vs first"
# along   = "turn"
# plus    = "later"
# against = "first"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "K#3265"
# reported = "building 51 layers takes 1.7 s at first, and 9.2 s at the fifth time in the same process"
# worse    = { environment = "tf1.14", turn = "later" }
# better   = { environment = "tf1.14", turn = "first" }
# when     = { work = "build" }
# ratio    = [4, 7]
# hardware = "not reported"
# version  = "Keras 1.0"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#25073"
# reported = "fit takes longer and longer if the model is compiled again before it (no number could be read)"
# worse    = { environment = "tf1.14", turn = "later" }
# better   = { environment = "tf1.14", turn = "first" }
# when     = { work = "recompile" }
# ratio    = [1.2, 20]
# hardware = "Windows 10"
# version  = "1.11 and 1.12"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#47971"
# reported = "if models are created and trained in a loop, each trains slower than the one before"
# worse    = { environment = "tf2.4", turn = "later" }
# better   = { environment = "tf2.4", turn = "first" }
# when     = { work = "retrain" }
# ratio    = [1.1, 10]              # no number could be read
# hardware = "CPU, Windows 10"
# program  = "similar"
# ///
"""One pass of a loop that makes models.

work  build: an input and 51 dense layers of 100 units; recompile: compile the same model again, and fit one row;
      retrain: clear_session, a new model of two dense layers, and fit of 100 batches of 100 rows from a shuffled
      dataset
turn  first: the first pass; later: the fifth (build), 30th (recompile) or tenth pass (retrain)
"""

from kit import fixed_batch, main

TURNS = {"build": 5, "recompile": 30, "retrain": 10}


def scenario(bench, *, work="build", turn="first"):
    """Time one pass of the loop."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        run = MAKERS[work](tf, keras)
    if turn == "later":
        with bench.phase("earlier turns"):
            for _ in range(TURNS[work] - 1):
                run()
    bench.once(lambda: run() and None)
    bench.fingerprint(turn="done")


def build(tf, keras):
    """Return a function that makes layers that are never called with data."""

    def run():
        x = keras.layers.Input((100,))
        for _ in range(51):
            x = keras.layers.Dense(100)(x)
        return [x]

    return run


def recompile(tf, keras):
    """Return a function that compiles and fits the same model again."""
    inputs = keras.layers.Input((10,))
    hidden = keras.layers.Dense(25, activation="relu")(inputs)
    model = keras.models.Model(inputs, keras.layers.Dense(10, activation="softmax")(hidden))
    x = y = fixed_batch((1, 10), "float32") > 0

    def run():
        model.compile("adam", "categorical_crossentropy")
        return [model.fit(x.astype("float32"), y.astype("float32"), epochs=10, verbose=0)]

    return run


def retrain(tf, keras):
    """Return a function that makes and fits a new model."""
    x, y = fixed_batch((10000, 100), "float32"), fixed_batch((10000, 5), "float32")

    def run():
        keras.backend.clear_session()
        dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).repeat().batch(100).prefetch(1)
        inputs = keras.layers.Input((100,))
        hidden = keras.layers.Dense(100, activation="relu")(inputs)
        model = keras.models.Model(inputs, keras.layers.Dense(5)(hidden))
        model.compile("adam", "mse")
        return [model.fit(dataset, steps_per_epoch=100, epochs=1, verbose=0)]

    return run


MAKERS = {"build": build, "recompile": recompile, "retrain": retrain}


if __name__ == "__main__":
    main(scenario)
