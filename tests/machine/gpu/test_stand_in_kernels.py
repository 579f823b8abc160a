"""Kernels on the fake driver: it computes their PTX on the host, and says what it doesn't compute."""

import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.fatbinaries import wrapped

KERNELS = Path(__file__).parent / "kernels"


KINDS = {"f32": "float32", "f64": "float64", "s32": "int32", "u32": "uint32", "s64": "int64", "u16": "uint16"}


def launch(stand_ins: Path, image: bytes, arguments: Sequence[np.ndarray], blocks: int, threads: int) -> None:
    """Launch the kernel of the image on these arrays."""
    cuda = ctypes.CDLL(str(stand_ins / "libcuda.so.1"))
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuModuleLoadData(ctypes.byref(module), image) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"kernel") == 0
    addresses = [ctypes.c_void_p(array.ctypes.data) for array in arguments]
    pointers = (ctypes.c_void_p * len(addresses))(*[ctypes.addressof(address) for address in addresses])
    assert cuda.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, None, pointers, None) == 0


def make_ptx(kind: str, size: int, body: str) -> bytes:
    """Return the code of a kernel with these instructions, whose elements have this PTX type."""
    text = (KERNELS / "elements.ptx").read_text()
    return text.replace("KIND", kind).replace("SIZE", str(size)).replace("BODY", body).encode()


def compute(stand_ins: Path, kind: str, body: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute one element of each pair with these instructions."""
    values = np.zeros_like(a)
    launch(stand_ins, make_ptx(kind, a.itemsize, body), [a, b, values], a.size // 8, 8)
    return values


INSTRUCTIONS = [
    ("f32", "add.ftz.f32 %c, %a, %b;", np.add),
    ("f32", "sub.f32 %c, %a, %b;", np.subtract),
    ("f32", "mul.f32 %c, %a, %b;", np.multiply),
    ("f32", "div.rn.f32 %c, %a, %b;", np.divide),
    ("f32", "fma.rn.f32 %c, %a, %b, 0f3F800000;", lambda a, b: a * b + 1),
    ("f32", "max.f32 %c, %a, %b;", np.maximum),
    ("f32", "min.f32 %c, %a, %b;", np.minimum),
    ("f32", "neg.f32 %c, %a;", lambda a, b: -a),
    ("f32", "abs.f32 %c, %a;", lambda a, b: abs(a)),
    ("f32", "abs.f32 %c, %a; sqrt.approx.f32 %c, %c;", lambda a, b: np.sqrt(abs(a))),
    ("f32", "ex2.approx.ftz.f32 %c, %a;", lambda a, b: np.exp2(a)),
    ("f32", "abs.f32 %c, %a; lg2.approx.f32 %c, %c;", lambda a, b: np.log2(abs(a))),
    ("f32", "tanh.approx.f32 %c, %a;", lambda a, b: np.tanh(a)),
    ("f32", "setp.gt.f32 %p1, %a, 0f00000000; selp.f32 %c, %a, 0f00000000, %p1;", lambda a, b: np.maximum(a, 0)),
    ("f32", "cvt.rn.f16.f32 %h1, %a; cvt.f32.f16 %c, %h1;", lambda a, b: a.astype("float16").astype("float32")),
    ("f32", "cvt.rmi.f32.f32 %c, %a;", lambda a, b: np.floor(a)),
    ("f64", "div.rn.f64 %c, %a, %b;", np.divide),
    ("f64", "mov.b64 {%r5, %r6}, %a; xor.b32 %r6, %r6, -2147483648; mov.b64 %c, {%r5, %r6};", lambda a, b: -a),
    ("s32", "rem.s32 %c, %a, %b;", np.fmod),
    ("s32", "shr.s32 %c, %a, 3;", lambda a, b: a >> 3),
    (
        "s32",
        "setp.lt.s32 %p1, %a, %b; @%p1 bra LESS; mov.u32 %c, %b; ret; LESS: mov.u32 %c, %a;",
        lambda a, b: np.where(a < b, a, 0),
    ),  # threads that end before they store have no result
    ("s64", "mul.lo.s64 %c, %a, %b;", np.multiply),
    ("u32", "mul.hi.u32 %c, %a, %b;", lambda a, b: (a.astype("uint64") * b >> 32).astype("uint32")),
    ("u32", "bfe.u32 %c, %a, 4, 8;", lambda a, b: a >> 4 & 255),
    ("u32", "lop3.b32 %c, %a, %b, %a, 0x3c;", np.bitwise_xor),
    ("u16", "add.s16 %c, %a, %b;", np.add),
]


def test_instructions_are_computed(stand_ins):
    random = np.random.default_rng(0)
    for kind, instruction, expected in INSTRUCTIONS:
        is_float = kind.startswith("f")
        a, b = (random.normal(scale=3, size=40) * (1 if is_float else 1000) for _ in range(2))
        a, b = (a if is_float else a.astype("int64")).astype(KINDS[kind]), b.astype(KINDS[kind])
        values = compute(stand_ins, kind, instruction, a, b)
        np.testing.assert_allclose(values, expected(a, b), rtol=1e-6, atol=1e-6, err_msg=instruction)


def test_threads_exchange_numbers_and_wait_for_each_other(stand_ins):
    numbers, total = np.arange(64, dtype="float32"), np.array([1], "float32")
    launch(stand_ins, (KERNELS / "sum.ptx").read_bytes(), [numbers, total], 1, 64)
    assert total[0] == 1 + 2 * numbers.sum()


def test_code_in_a_fat_binary_is_read_compressed(stand_ins):
    ptx = make_ptx("f32", 4, "add.f32 %c, %a, %b;")
    # LZ4: all bytes as they are, after their number; is_compressed is 0x2000
    compressed = b"\xf0" + b"\xff" * ((len(ptx) - 15) // 255) + bytes([(len(ptx) - 15) % 255]) + ptx
    start = struct.pack("<HHIQI8xI8xQ8xQ", 1, 0x101, 64, len(compressed), len(compressed), 80, 0x2000, len(ptx))
    a, b, values = np.ones(8, "float32"), np.full(8, 2, "float32"), np.zeros(8, "float32")
    launch(stand_ins, wrapped(start.ljust(64, b"\0") + compressed), [a, b, values], 1, 8)
    assert values.tolist() == [3.0] * 8


def test_after_what_is_not_computed_nothing_is(stand_ins):
    script = """
import sys, numpy as np
from pathlib import Path
from tests.machine.gpu.test_stand_in_kernels import compute
ones = np.ones(8, "float32")
for body in ("mov.f32 %c, %a;", "tex.1d.v4.f32.s32 {%c, %c, %c, %c}, [%rd1, {%r1}];", "mov.f32 %c, %a;"):
    print(compute(Path(sys.argv[1]), "f32", body, ones, ones)[0])
"""
    root = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    completed = subprocess.run(
        [sys.executable, "-c", script, str(stand_ins)], env=root, capture_output=True, text=True, check=True
    )
    assert completed.stdout.split() == ["1.0", "0.0", "0.0"]
    assert "kernel is not computed: tex.1d" in completed.stderr
