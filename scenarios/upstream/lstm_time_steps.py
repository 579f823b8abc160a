# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "An LSTM over a sequence: in one call, and by time step"
# source = "https://github.com/tensorflow/tensorflow/issues/39076"
# tags   = ["upstream", "layers"]
#
# [tool.harness.axes]
# way = ["by_step", "whole", "cell"]
#
# [[tool.harness.compare]]
# name    = "by step vs whole"
# along   = "way"
# plus    = "by_step"
# against = "whole"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#39076"
# reported = "a training step takes much longer if an LSTM layer is called in a loop over the time steps"
# worse    = { environment = "tf2.1", way = "by_step" }
# better   = { environment = "tf2.1", way = "whole" }
# ratio    = [2, 50]                # 17 ms a step for the whole, and no other number that could be read
# hardware = "GTX 970, Colab, and a P100"
# program  = "similar"
# ///
"""The gradients of an LSTM in a traced function: 8 sequences of 6 time steps of 20 numbers, 32 units.

way  whole: one call of the layer with the whole sequence; by_step: one call of the layer per time step, with the state
     of the previous step; cell: one call of the layer's cell per time step
"""

from kit import digits, fixed_weights, main

BATCH, TIME_STEPS, WIDTH, UNITS = 8, 6, 20, 32


def scenario(bench, *, way="by_step"):
    """Measure one call."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        layer = keras.layers.LSTM(UNITS, return_state=True)
        x = tf.ones((BATCH, TIME_STEPS, WIDTH))
        layer(x)
        layer.set_weights(fixed_weights([weight.shape for weight in layer.get_weights()]))

        def output():
            if way == "whole":
                return layer(x)[0]
            state = [tf.zeros((BATCH, UNITS))] * 2
            for time in range(TIME_STEPS):
                if way == "cell":
                    result, state = layer.cell(x[:, time], state)
                else:
                    result, *state = layer(x[:, time : time + 1], initial_state=state)
            return result

        @tf.function
        def gradients():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(output() ** 2)
            return tape.gradient(loss, layer.trainable_variables)

    with bench.phase("first call"):
        values = bench.fetch(gradients())
    bench.measure(gradients)
    bench.placed(layer.weights)
    bench.fingerprint(bias=digits(values[-1])[:4])


if __name__ == "__main__":
    main(scenario)
