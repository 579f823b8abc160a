from harness.machine import sysfs


def test_what_cannot_be_read_is_none(tree):
    texts = {"0-2,8\n": {0, 1, 2, 8}, "\n": set(), "any": None}
    assert {text: sysfs.read_cpu_list(tree({"list": text}) / "list") for text in texts} == texts
    root = tree({"number": "12\n", "word": "twelve\n"})
    assert sysfs.read_integer(root / "number") == 12
    assert sysfs.read_integer(root / "word") is None
    assert sysfs.read_integer(root / "missing") is None
    assert sysfs.read_text(root / "missing") is None
    assert sysfs.read_cpu_list(root / "missing") is None
    assert sysfs.read_text(root) is None
