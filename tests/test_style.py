"""Texts and names keep to docs/dev/style.md: counts of flagged sentences fall, and never rise."""

import re
from collections import Counter

import pytest

from tests import style

#: For each rule, a sentence that it flags and one that it doesn't.
EXAMPLES = {
    "where for if": ("Where no secret can be kept, runs are not signed.", "See the folder, where images are stored."),
    "told, said, asked": ("Nothing is said of the clocks.", "The report shows the clocks, and says so."),
    "is no X": ("The value is no shard of a run.", "There is no GPU, and the ratio is no longer valid."),
    "what-clause for a noun": ("This is what others took of it.", "What happens if a launch fails? See below."),
    "no head noun": ("Each runs in a process of its own.", "Each launch has its own container and files."),
    "inversion": ("Not kept is the clock of each GPU.", "The record omits the clock of each GPU."),
    "a for per": ("It keeps 80 bytes a call on average.", "It keeps 80 bytes per call on average."),
    "else for otherwise": ("The run ends with 1, else with 0.", "Does anything else run on this machine?"),
    "number in words": ("It agrees in four of five runs.", "It takes a tenth of a second per call."),
    "private term": ("All cards stand in the table below.", "All GPUs are in the scatter plot below."),
}

#: Texts that no rule flags.
PLAIN = [
    "The type of the value is in the header, and `dtype` stands for its name.",
    "There is no network, so the run takes longer than that.",
    "The job runs every night, and **Night** is the name of its workflow.",
    "The option `--quiet` and the quiet mode print nothing.",
    "The formula is a + b, where n is the number of launches.",
    "Python keeps the connection alive. It uses `tf.scatter_nd` for that.",
    "The process has its own memory and the same GPU as before.",
]

#: Largest size of a page of docs/ in bytes. Only generated pages are larger.
LARGEST = 20_000
GENERATED = {"docs/reference/cli.md", "docs/results/upstream-issues.md"}

PAGES = {
    str(path.relative_to(style.ROOT)): path.read_text()
    for path in style.files()
    if path.suffix == ".md" and not path.is_relative_to(style.ROOT / "docs" / "examples")
}


@pytest.mark.slow
def test_counts_only_fall():
    counts = style.current()
    allowances = {name: style.allowance(style.ROOT / name) for name in counts["sentences"]}
    messages = style.problems(counts, style.load_baseline(), allowances)
    assert not messages, "\n".join([*messages, f"When counts have fallen, lower the baseline: {style.UPDATE}"])


@pytest.mark.slow
def test_few_names_are_forbidden_words():
    messages = style.excessive_names(style.name_shares())
    assert not messages, "\n".join(messages)


def test_pages_are_short():
    docs = {name for name, text in PAGES.items() if name.startswith("docs/") and len(text.encode()) > LARGEST}
    assert docs <= GENERATED


def test_the_headings_of_a_page_are_unique():
    for name, page in PAGES.items():
        if name == "CHANGELOG.md":  # each version has the same headings
            continue
        text = re.sub(r"^( *)(```|~~~).*?^\1\2", "", page, flags=re.M | re.S)
        counts = Counter(re.findall(r"^#+ (.*)", text, flags=re.M))
        assert not [heading for heading, times in counts.items() if times > 1], name


def test_a_rule_flags_the_habit_and_not_plain_english():
    assert list(EXAMPLES) == list(style.RULES)
    for rule, (habit, plain) in EXAMPLES.items():
        assert (rule in style.flagged(habit), style.flagged(plain)) == (True, []), rule
    for text in PLAIN:
        assert [style.flagged(sentence) for sentence in style.sentences(text) if style.flagged(sentence)] == []


def test_a_count_that_rises_is_a_problem():
    baseline = {"sentences": {"a.md": {"docs": 2}}, "names": {"class Card": 1}}
    allowances = {"a.md": {"docs": 0}, "new.md": {"docs": 1}}

    def messages(sentences: dict, name: str = "class Card", times: int = 1) -> list[str]:
        counts = {"sentences": sentences, "names": {name: times}}
        return [problem.split(".")[0] for problem in style.problems(counts, baseline, allowances)]

    assert messages({"a.md": {"docs": 2}, "new.md": {"docs": 1}}) == []
    assert messages({"a.md": {"docs": 1}}) == []
    assert len(messages({"a.md": {"docs": 3}})) == 1
    assert len(messages({"new.md": {"docs": 2}})) == 1
    assert len(messages({}, times=2)) == 1
    assert len(messages({}, name="class Told")) == 1
