"""GPUs: what is the same card."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.gpu import pci_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),  # NVML
        ("0000:3b:00.0", "0000:3b:00.0"),  # CUDA
        ("0001A2B3:00:00.0", "1a2b3:00:00.0"),
        (" 0000:01:00.1\n", "0000:01:00.1"),
        ("01:00.0", ""),
        ("0000:01:00.0 and more", ""),
        ("", ""),
    ],
)
def test_an_address_has_one_spelling(text, address):
    assert pci_address(text) == address


@given(st.integers(0, 2**16 - 1), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_nvml_and_cuda_write_the_same_address(domain, bus, device, function):
    rest = f"{bus:02X}:{device:02X}.{function}"
    assert pci_address(f"{domain:08X}:{rest}") == pci_address(f"{domain:04x}:{rest.lower()}") != ""
