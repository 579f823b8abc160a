"""An index of everything that is stored, for searches: claims with their outcomes, examples, scenarios and releases.

`make reference` writes it to docs/stored.json. So a search reads only the headers of the user's own scenarios and of
files that changed since.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from harness import package_data
from harness.files import read
from harness.model.errors import FileError, UsageError
from harness.model.issues import HOW_TO_WRITE, parse
from harness.model.scenario import Claim, Scenario
from harness.model.texts import joined
from harness.plan.claims import UPSTREAM, find_issue
from harness.plan.selection import make_unknown_error
from harness.project import Project
from harness.scenarios.catalog import find_scenario_files, load_scenario

T = TypeVar("T")

PLACE = package_data.FOLDER / "docs" / "stored.json"

#: The fields of a claim in the index.
_CLAIM_FIELDS = ("reported", "of", "ratio", "seconds", "bytes", "hardware", "version", "program", "fixed", "visible")

#: Words that mean about the same in a search.
_SYNONYMS = (
    "memory ram leak oom rss growth grows keeps peak",
    "slow regression slowdown speed performance fast longer quadratic drop overhead degradation takes",
    "predict inference",
    "train fit epoch",
    "recurrent rnn lstm gru",
    "trace retracing",
    "load import startup",
    "dataset data pipeline",
    "quantized int8 tflite lite",
    "function graph compiled",
    "jit xla",
    "strategy distributed workers multi",
    "image augmentation",
    "same fixed",
)
#: Words that say nothing about the contents.
_IGNORED = re.findall(
    r"\w+", "a an and as at by can does for from how i if in is it k my of on or so t tf than that the to why with"
)
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+(?:\.\d+)*")
_SUFFIX = re.compile(r"(?<=\w{3})(?:ations?|ings?|ions?|ers?|ed|es|s|ly|al|e)$")

#: The weight of a synonym, and of a word outside the main part of a text. Texts with less than this share of the best
#: score are left out.
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry of the index. `words` are searched too, but not shown. `result` is empty if nothing was measured."""

    kind: str
    name: str
    title: str
    result: str
    date: str
    machine: str
    command: str
    words: str


@dataclass(frozen=True, slots=True)
class Index:
    """The index of a project. `scenarios` has the description of each scenario, `document` the rest."""

    scenarios: Mapping[str, Mapping[str, Any]]
    broken: Mapping[str, FileError]
    document: Mapping[str, Any]

    def find_claims(self, words: str = "", family: str = "") -> list[dict[str, Any]]:
        """Return the claims that match these words best, or all, sorted by issue.

        Raises UsageError for an unknown family.
        """
        rows = [
            {
                **claim,
                "scenario": name,
                "families": [tag for tag in entry["tags"] if tag != UPSTREAM],
                "result": self.document["results"].get(f"{claim['issue']} {name} {claim['reported']}", {}),
            }
            for name, entry in self.scenarios.items()
            for claim in entry["claims"]
        ]
        families = {name for row in rows for name in row["families"]}
        if family and family not in families:
            raise make_unknown_error(family, sorted(families), "family")
        rows = [row for row in rows if family in ("", *row["families"])]
        rows.sort(key=lambda row: (row["url"].rpartition("/")[0], int(row["url"].rpartition("/")[2])))
        return select(rows, map(_get_texts, map(self._make_claim_entry, rows)), words)

    def find_scenarios(self, words: str = "") -> list[tuple[str, Mapping[str, Any]]]:
        """Return the names and descriptions of the scenarios that match these words best, or all, sorted by name."""
        pairs = list(self.scenarios.items())
        return select(pairs, (_get_texts(_make_scenario_entry(*pair)) for pair in pairs), words)

    def select_issues(self, names: Sequence[str], family: str = "", *, every: bool = False) -> list[str]:
        """Return the short names of the issues with these names, of a family, or of all issues. Raises UsageError."""
        if names and (family or every):
            raise UsageError(
                f"{joined(names)} and {'--all' if every else '--family'} both select issues.", "Use one of the two."
            )
        if not (names or family or every):
            raise UsageError(
                "No issue is specified.", "Example: harness repro T#40261. To list all issues: harness repro list"
            )
        for name in names:
            if not any(map(str.isdecimal, name)):
                raise UsageError(
                    f"{name!r} is not a valid issue name.", f"To search: harness repro list {name}. {HOW_TO_WRITE}"
                )
        known = list(dict.fromkeys(parse(row["url"]) for row in self.find_claims(family=family)))
        return [issue.short for issue in dict.fromkeys(find_issue(name, known) for name in names) or known]

    @property
    def entries(self) -> list[StoredEntry]:
        """All entries."""
        return [
            *map(self._make_claim_entry, self.find_claims()),
            *(_make_scenario_entry(name, entry) for name, entry in self.scenarios.items()),
            *(StoredEntry(**row) for row in self.document["entries"]),
        ]

    def _make_claim_entry(self, claim: Mapping[str, Any]) -> StoredEntry:
        result, scenario = claim["result"], self.scenarios[claim["scenario"]]
        than = " than claimed" if result.get("outcome") in ("smaller", "larger") else ""
        sentences = [f"{result['outcome']}{than}: {result['measured']}" if result else "not measured yet"]
        sentences += [result[key] for key in ("newest", "fixed") if result.get(key)]
        words = [*scenario["tags"], *claim["environments"], *claim["values"]]
        return StoredEntry(
            kind="claim",
            name=claim["issue"],
            title=claim["title"],
            result="; ".join(sentences),
            date=result.get("date", ""),
            machine=result.get("machine", ""),
            command=f"harness repro {claim['issue']}",
            words=" ".join([claim["scenario"], scenario["title"], claim["url"], *words]),
        )


def load_index() -> Index:
    """Return the index of the project. Scenarios with an invalid file are in `broken`."""
    project = Project.find()
    document = json.loads(PLACE.read_text(encoding="utf-8"))
    scenarios, broken = {}, {}
    for path in find_scenario_files(project):
        entry = document["scenarios"].get(path.stem)
        try:
            if entry is None or entry["hash"] != hash_text(read(path)):
                entry = describe(load_scenario(path))
            scenarios[path.stem] = {**entry, "path": str(path)}
        except FileError as error:
            broken[path.stem] = error
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    return Index(scenarios, broken, document)


def hash_text(data: bytes) -> str:
    """Return a short hash of a scenario's file."""
    return hashlib.sha256(data).hexdigest()[:16]


def describe(scenario: Scenario) -> dict[str, Any]:
    """Return the description of a scenario as JSON values."""
    claims = [_describe_claim(claim, scenario.claims) for claim in scenario.claims]
    return {"title": scenario.title, "tags": list(scenario.tags), "axes": dict(scenario.axes), "claims": claims}


def _describe_claim(claim: Claim, all_claims: Sequence[Claim]) -> dict[str, Any]:
    sides = [side for side in (claim.worse, claim.better) if side]
    # the same problem can be reported in several repositories
    others = [other for other in all_claims if (other.worse, other.better) == (claim.worse, claim.better)]
    is_repeated = claim.reported.startswith("the same") and others[0] is not claim
    return {
        "issue": claim.issue.short,
        "url": claim.issue.url,
        "title": f"{claim.reported}: {others[0].reported}" if is_repeated else claim.reported,
        "environments": list(dict.fromkeys(side.environment for side in sides)),
        "values": [value for side in sides for value in side.axes.values()],
        **{name: getattr(claim, name) for name in _CLAIM_FIELDS},
    }


def _make_scenario_entry(name: str, entry: Mapping[str, Any]) -> StoredEntry:
    axes = "; ".join(f"{axis}: {', '.join(values)}" for axis, values in entry["axes"].items())
    command = f"harness matrix -s {name} -e tf2.15,tf2.16"
    return StoredEntry("scenario", name, entry["title"], "", "", "", command, f"{axes} {' '.join(entry['tags'])}")


def select(items: Sequence[T], texts: Iterable[tuple[str, str]], query: str) -> list[T]:
    """Return the items whose texts match a query best, the best first. If the query is empty, return all.

    The text of an item is a pair: its main part, and other words that count half.
    """
    if not query.strip():
        return list(items)
    word_sets = [(_add_groups(split_words(main)), _add_groups(split_words(rest))) for main, rest in texts]
    counts = Counter(word for main, rest in word_sets for word in main | rest)

    def get_score(term: str, main: set[str], rest: set[str]) -> float:
        """Return the weight of a word in a text: the fewer texts have the word, the more it says."""
        weights = (
            weight * math.log(1.0 + len(items) / counts[word]) * (1.0 if word in main else _HALF)
            for word, weight in ((term, 1.0), (_GROUPS.get(term, ""), _HALF))
            if word in main or word in rest
        )
        return max(weights, default=0.0)

    terms = split_words(query)
    scores = [sum(get_score(term, *sets) for term in terms) for sets in word_sets]
    least = max(scores, default=0.0) * _HALF
    order = sorted(range(len(items)), key=lambda at: -scores[at])
    return [items[number] for number in order if scores[number] > least]


def split_words(text: str) -> list[str]:
    """Return the stems of the words in a text, without repetitions: `slow` for `slower`, and 2.16 for tf2.16.1."""
    stems = map(_get_stem, _WORD.findall(re.sub("(?i)tensorflow", "tf", text)))
    return list(dict.fromkeys(stem for stem in stems if stem not in _IGNORED))


@cache
def _get_stem(word: str) -> str:
    if word[0].isdigit():
        return ".".join(word.split(".")[:2])
    stem = _SUFFIX.sub("", word.lower())
    # planned, planning: plan
    return stem[:-1] if stem != word.lower() and stem[-2] == stem[-1] else stem


#: The name of the group of each stem that has synonyms. No word is such a name.
_GROUPS = {_get_stem(word): f"~{group}" for group in _SYNONYMS for word in group.split()}


def _add_groups(stems: Sequence[str]) -> set[str]:
    return {*stems, *(_GROUPS[stem] for stem in stems if stem in _GROUPS)}


def find_entries(entries: Sequence[StoredEntry], query: str) -> list[StoredEntry]:
    """Return the entries that match a query best, the best first, and only the best one of each name."""
    by_name: dict[str, StoredEntry] = {}
    for entry in select(entries, map(_get_texts, entries), query):
        by_name.setdefault(entry.name, entry)
    return list(by_name.values())


def _get_texts(entry: StoredEntry) -> tuple[str, str]:
    return f"{entry.name} {entry.title}", entry.words
