"""What the driver tells of GPUs, by a library with its functions' own signatures."""

from kit import driver

NOT_SUPPORTED = 801


class Cuda:
    """A libcuda with these GPUs: name, capability and address each; `broken` are functions that return an error."""

    def __init__(self, *cards, broken=()):
        self._cards = cards
        for name in broken:
            setattr(self, name, lambda *_: NOT_SUPPORTED)

    def cuInit(self, flags):  # noqa: N802, the driver's names
        return 0

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = len(self._cards)
        return 0

    def cuDeviceGet(self, device, number):  # noqa: N802
        device._obj.value = 10 + number  # a handle, which need not be the number
        return 0

    def cuDeviceGetAttribute(self, value, attribute, device):  # noqa: N802
        value._obj.value = self._cards[device - 10][1][{75: 0, 76: 1}[attribute]]
        return 0

    def cuDeviceGetName(self, buffer, size, device):  # noqa: N802
        buffer.value = self._cards[device - 10][0].encode()
        return 0

    def cuDeviceGetPCIBusId(self, buffer, size, device):  # noqa: N802
        buffer.value = self._cards[device - 10][2].encode()
        return 0


T4 = ("Tesla T4", (7, 5), "0000:00:1E.0")
A100 = ("NVIDIA A100-SXM4-40GB", (8, 0), "0000:3B:00.0")


def test_each_gpu_is_told_in_cudas_order_without_an_address_that_is_not_told():
    assert driver.gpus(Cuda(A100, T4)) == [
        {"name": "NVIDIA A100-SXM4-40GB", "capability": "8.0", "pci": "0000:3B:00.0"},
        {"name": "Tesla T4", "capability": "7.5", "pci": "0000:00:1E.0"},
    ]
    assert driver.gpus(Cuda()) == []
    cuda = Cuda(T4, broken=["cuDeviceGetPCIBusId"])
    assert driver.gpus(cuda) == [{"name": "Tesla T4", "capability": "7.5"}]


def test_a_driver_that_does_not_answer_tells_nothing(monkeypatch):
    for function in ("cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute"):
        assert driver.gpus(Cuda(T4, broken=[function])) == [], function
    assert driver.gpus(object()) == []
    monkeypatch.setattr(driver, "LIBRARY", "libcuda-that-is-not-there.so.1")
    assert driver.gpus() == []


def test_when_code_is_loaded_is_asked_of_the_driver():
    library = Cuda(T4)
    assert driver.loading(library) is None  # a driver before CUDA 11.7 has no such function
    for mode, word in {1: "eager", 2: "lazy", 3: None}.items():

        def answer(value, mode=mode):
            value._obj.value = mode
            return 0

        library.cuModuleGetLoadingMode = answer
        assert driver.loading(library) == word
