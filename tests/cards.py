"""GPUs that people have, oldest first, each as the first of its machine."""

from harness.model.gpu import Gpu

K80 = Gpu(0, "GPU-37", "Tesla K80", (3, 7), 12 * 2**30)
V100 = Gpu(0, "GPU-70", "Tesla V100", (7, 0), 16 * 2**30)
T4 = Gpu(0, "GPU-75", "Tesla T4", (7, 5), 16 * 2**30)
A100 = Gpu(0, "GPU-80", "NVIDIA A100", (8, 0), 40 * 2**30)
RTX3090 = Gpu(0, "GPU-86", "NVIDIA GeForce RTX 3090", (8, 6), 24 * 2**30)
RTX4090 = Gpu(0, "GPU-89", "NVIDIA GeForce RTX 4090", (8, 9), 24 * 2**30)
H100 = Gpu(0, "GPU-90", "NVIDIA H100", (9, 0), 80 * 2**30)
B200 = Gpu(0, "GPU-100", "NVIDIA B200", (10, 0), 180 * 2**30)
RTX5090 = Gpu(0, "GPU-120", "NVIDIA GeForce RTX 5090", (12, 0), 32 * 2**30)
