"""The names of the volumes that keep compiled GPU code."""

from harness.backends.kernels import ENVIRON, volume

IMAGE = "sha256:0123456789abcdef0123"


def test_a_volume_is_of_one_image_and_one_model_of_gpu():
    assert volume(IMAGE, ["NVIDIA H100 80GB HBM3"]) == "harness-ptx-0123456789ab-nvidia-h100-80gb-hbm3"
    assert volume(IMAGE, ["Tesla T4", "Tesla T4"]) == "harness-ptx-0123456789ab-tesla-t4"
    assert volume(IMAGE, ["Tesla T4", "Tesla V100"]) == "harness-ptx-0123456789ab-tesla-t4-tesla-v100"
    assert volume(IMAGE, []) == "harness-ptx-0123456789ab-gpu"


def test_the_driver_is_told_a_size_that_holds_all_of_tensorflow():
    assert int(ENVIRON["CUDA_CACHE_MAXSIZE"]) == 2147483648
