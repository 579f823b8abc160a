# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Inference of a dense network with one thread, with oneDNN and without"
# source = "https://github.com/tensorflow/tensorflow/issues/56350"
# tags   = ["upstream", "onednn"]
#
# [tool.harness.axes]
# rows = ["few", "many"]
#
# [tool.harness.default]
# rows = "few"
#
# [tool.harness.env]
# TF_ENABLE_ONEDNN_OPTS = ["1", "0"]
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.7"]
# reason   = "The official wheels include oneDNN from 2.5 on, but 2.5 and 2.6 crash with it (floating point exception)."
# devices  = ["cpu"]
#
# [[tool.harness.claim]]
# issue    = "T#56350"
# reported = "with one thread, 1,000 runs take 31.1 s with oneDNN and 16.9 s without"
# worse    = { environment = "tf2.9", TF_ENABLE_ONEDNN_OPTS = "1" }
# better   = { environment = "tf2.9", TF_ENABLE_ONEDNN_OPTS = "0" }
# when     = { rows = "few" }
# ratio    = [1.5, 2.3]
# hardware = "Intel Sapphire Rapids"
# program  = "guessed"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "https://github.com/uxlfoundation/oneDNN/issues/1393"
# reported = "with one thread, 100 runs take 4.5 s with oneDNN and 3.8 s without"
# worse    = { environment = "tf2.9", TF_ENABLE_ONEDNN_OPTS = "1" }
# better   = { environment = "tf2.9", TF_ENABLE_ONEDNN_OPTS = "0" }
# when     = { rows = "many" }
# ratio    = [1.05, 1.3]
# hardware = "not reported"
# program  = "guessed"
# visible  = ["cpu"]
# [[tool.harness.claim]]
# issue    = "https://github.com/uxlfoundation/oneDNN/issues/1112"
# reported = "a recommender takes 6.3 s with oneDNN and 2.7 s without"
# worse    = { environment = "tf2.7", TF_ENABLE_ONEDNN_OPTS = "1" }
# better   = { environment = "tf2.7", TF_ENABLE_ONEDNN_OPTS = "0" }
# when     = { rows = "few" }
# ratio    = [1.9, 2.9]
# hardware = "not reported; the official wheels of 2.5 crash with oneDNN"
# version  = "2.5"
# program  = "guessed"
# visible  = ["cpu"]
#
# [[tool.harness.compare]]
# name    = "with oneDNN vs without"
# along   = "TF_ENABLE_ONEDNN_OPTS"
# plus    = "1"
# against = "0"
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""A run of three dense layers and a normalized product of two towers, in a session with one thread.

The variable TF_ENABLE_ONEDNN_OPTS turns oneDNN on and off. The value 1 also turns it on if it isn't on by default, as
up to 2.8 and on CPUs without AVX-512 VNNI.

rows  few: 8 rows per run; many: 512 rows per run
"""

from kit import digits, fixed_batch, fixed_weights, main

ROWS = {"few": 8, "many": 512}
COLUMNS, UNITS = 128, 256


def scenario(bench, *, rows="few"):
    """Measure one run."""
    with bench.phase("import"):
        import tensorflow as tf

        v1 = tf.compat.v1
        v1.disable_eager_execution()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    bench.device()
    with bench.phase("build"):
        x = fixed_batch((ROWS[rows], COLUMNS), "float32")
        batch = v1.placeholder(tf.float32, (None, COLUMNS))
        towers = []
        for tower in ("user", "item"):
            hidden = batch
            shapes = [(COLUMNS, UNITS), (UNITS, UNITS), (UNITS, COLUMNS)]
            for number, weights in enumerate(fixed_weights(shapes)):
                name = "{}_{}".format(tower, number)
                kernel = v1.get_variable(name, initializer=weights.astype("float32"))
                hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(hidden, kernel), tf.zeros([kernel.shape[1]])))
            towers.append(tf.math.l2_normalize(hidden, axis=1))
        product = tf.reduce_sum(towers[0] * towers[1], axis=1)
        config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        session = v1.Session(config=config)
        session.run(v1.global_variables_initializer())
        run = session.make_callable(product, [batch])
    with bench.phase("first call"):
        bench.fetch(run(x))
    bench.measure(lambda: run(x), document=1000)
    bench.fingerprint(outputs=digits(run(x))[:8])


if __name__ == "__main__":
    main(scenario)
