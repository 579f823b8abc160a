"""GPUs: what is the same card, and how it is set."""

from harness.model.gpu import find_differing, format_pci_address

ADDRESSES = {
    "00000000:3B:00.0": "0000:3b:00.0",  # NVML
    "0000:3b:00.0": "0000:3b:00.0",  # CUDA
    "0001A2B3:00:00.0": "1a2b3:00:00.0",
    " 0000:01:00.1\n": "0000:01:00.1",
    "01:00.0": "",
    "0000:01:00.0 and more": "",
    "": "",
}


def test_an_address_has_one_spelling():
    assert {text: format_pci_address(text) for text in ADDRESSES} == ADDRESSES


CARD = {"index": 0, "name": "NVIDIA A100", "power_limit_watts": 400.0}


def test_what_differs_between_gpus_is_told_one_by_one():
    assert find_differing([CARD, {**CARD, "index": 3}], [CARD, {**CARD, "index": 3, "power_limit_watts": 250.0}]) == [
        ("GPU 3 power_limit_watts", 400.0, 250.0)
    ]
    assert find_differing([CARD], [{**CARD, "index": 1}], but=("index",)) == []
    assert find_differing([{**CARD, "ecc_pending": True}], [{**CARD, "ecc_pending": False}]) == []
    other = {**CARD, "name": "Tesla T4", "power_limit_watts": 70.0}
    assert find_differing([CARD], [other]) == [("GPU 0 name", "NVIDIA A100", "Tesla T4")]
    # what only one run tells is no difference
    assert find_differing([CARD], [{**CARD, "ecc": True}]) == find_differing(None, None) == []
    assert find_differing([CARD], [CARD, CARD]) == [("gpus", [CARD], [CARD, CARD])]
    assert find_differing("not known: no driver", [CARD]) == [("gpus", "not known: no driver", [CARD])]
