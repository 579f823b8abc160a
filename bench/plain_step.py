"""The original source's protocol as a plain script: one cell, without harness, in the measured environment.

    python plain_step.py graph|eager train_on_batch|fit [TIMES]

It prints the page faults per step and the seconds per step, for the small model on small data with tf.keras. TIMES: the
number of repetitions in the same process (default: 1, as in the source).
"""

import random
import resource
import sys
from time import time

import numpy as np
import tensorflow as tf

mode, call = sys.argv[1:3]
times = int(sys.argv[3]) if len(sys.argv) > 3 else 1
if mode == "graph" and tf.executing_eagerly():
    tf.compat.v1.disable_eager_execution()
if mode == "eager" and not tf.executing_eagerly():
    tf.compat.v1.enable_eager_execution()

K = tf.keras.backend
layers = tf.keras.layers
K.clear_session()
np.random.seed(1)
random.seed(2)
tf.compat.v1.set_random_seed(3)

ipt = layers.Input(batch_shape=(32, 140, 30))
x = layers.Conv1D(128, 40, strides=4, padding="same")(ipt)
x = layers.GlobalAveragePooling1D()(x)
x = layers.Dropout(0.5)(x)
x = layers.Dense(64, activation="relu")(x)
out = layers.Dense(1, activation="sigmoid")(x)
model = tf.keras.models.Model(ipt, out)
model.compile(tf.keras.optimizers.Adam(lr=1e-4), "binary_crossentropy")

X = np.random.randn(32, 140, 30).astype("float32")
Y = np.random.randint(0, 2, (32, 1)).astype("float32")
model.train_on_batch(X, Y)

iterations = 200
for _ in range(times):
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    start = time()
    for _ in range(iterations):
        if call == "fit":
            model.fit(X, Y, batch_size=32, epochs=1, verbose=0)
        else:
            model.train_on_batch(X, Y)
    seconds = (time() - start) / iterations
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults) / iterations, seconds)
