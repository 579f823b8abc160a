"""The observatory: pages about what is slow in TensorFlow and Keras today, and when it became slow.

`python -m bench.observatory` writes them; docs/results/observatory.md describes the data.
"""
