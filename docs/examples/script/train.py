"""Train a small network on random images, batch by batch."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
images = rng.random((1024, 28, 28), dtype=np.float32)
labels = rng.integers(10, size=1024)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Flatten(input_shape=(28, 28)),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")

for epoch in range(3):
    for start in range(0, len(images), 32):
        model.train_on_batch(images[start : start + 32], labels[start : start + 32])
    print("epoch", epoch + 1)
