"""What is waited for: whole results where they are on the host, one element of those on a GPU."""

import math
from types import SimpleNamespace as Thing

from kit.fetching import SMALL, fetch, fetch_one

FULL = "/job:localhost/replica:0/task:0/device:"


class FetchedTensor:
    """A tensor that notes what of it was copied to the host."""

    def __init__(self, shape, device, backing=None, place=None, log=None):
        self.log = [] if log is None else log
        self._place = place
        self.shape = Thing(num_elements=lambda: math.prod(shape), ndims=len(shape))
        self.device = FULL + device
        if backing:
            self.backing_device = FULL + backing

    def __getitem__(self, place):
        return FetchedTensor((), "GPU:0", place=place, log=self.log)

    def numpy(self):
        self.log.append("all" if self._place is None else self._place)


ON_GPU = [
    (FetchedTensor((1000, 1000), "GPU:0", backing="GPU:0"), (0, 0)),
    (FetchedTensor((SMALL + 1,), "GPU:0"), (0,)),  # of a release that does not tell the memory
    (FetchedTensor((256, SMALL // 256), "GPU:0", backing="GPU:0"), "all"),
    (FetchedTensor((), "GPU:0", backing="GPU:0"), "all"),
    (FetchedTensor((1,), "GPU:0", backing="GPU:0"), "all"),
    (FetchedTensor((0, 3), "GPU:0", backing="GPU:0"), "all"),
    (FetchedTensor((1000, 1000), "GPU:0", backing="CPU:0"), "all"),  # whole numbers are in the host's memory
    (FetchedTensor((1000, 1000), "CPU:0"), "all"),
]


#: The last is an array of 2.4's NumPy API, which holds a tensor.
WRAPPERS = [lambda t: t, lambda t: [1.0, t], lambda t: (None, {"loss": t}), lambda t: Thing(data=t)]


def test_every_tensor_is_waited_for_by_one_element_or_whole():
    for tensor, copied in ON_GPU:
        for wrap in WRAPPERS:
            tensor.log.clear()
            fetch_one(wrap(tensor))
            assert tensor.log == [copied], tensor.shape
    first, second = FetchedTensor((300, 300), "GPU:0"), FetchedTensor((SMALL * 2,), "GPU:1")
    fetch_one({"a": [first], "b": second})
    assert (first.log, second.log) == ([(0, 0)], [(0,)])
    fetched = []
    # values in rows of any length, which are on no device; and a variable of Keras 3, whose shape is a tuple
    fetch_one(Thing(shape=Thing(num_elements=lambda: None, ndims=2), numpy=lambda: fetched.append("ragged")))
    fetch_one(Thing(shape=(1000, 1000), device=FULL + "GPU:0", numpy=lambda: fetched.append("variable")))
    assert fetched == ["ragged", "variable"]


def test_other_results_are_let_be_but_for_arrays_of_other_backends():
    for value in (None, 0.5, "text", object(), [[], {}]):
        fetch(value)
        fetch_one(value)
    waits = []
    fetch([Thing(block_until_ready=lambda: waits.append("ready"), numpy=lambda: waits.append("copied"))])
    fetch({"loss": Thing(detach=lambda: waits.append("detached"), numpy=lambda: waits.append("copied"))})
    assert waits == ["ready"]
