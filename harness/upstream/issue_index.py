"""An index of the upstream issues whose claims scenarios check, with the estimated time to measure each issue."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.environments.catalog import load_environments
from harness.model.defaults import CLAIM_MEASURE, CLAIM_WARMUP
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.model.issues import Issue
from harness.model.scenario import Claim, Scenario
from harness.model.texts import joined
from harness.plan import claims
from harness.plan.claims import UPSTREAM
from harness.plan.selection import make_unknown_error
from harness.project import Project
from harness.scenarios.catalog import find_scenarios
from harness.session.forecast import START

#: The fields of a claim in the JSON document.
_CLAIM_FIELDS = ("reported", "of", "ratio", "seconds", "bytes", "hardware", "fixed", "visible")

#: The number of rounds that most claims need, because most claimed effects are large.
USUAL_ROUNDS = 3


@dataclass(frozen=True)
class KnownIssue:
    """An issue, with all of its claims and their scenarios."""

    issue: Issue
    claims: Sequence[tuple[Scenario, Claim]]

    @property
    def families(self) -> list[str]:
        """The tags of the issue's scenarios, except UPSTREAM."""
        return list(dict.fromkeys(tag for scenario, _ in self.claims for tag in scenario.tags if tag != UPSTREAM))

    @property
    def environments(self) -> list[str]:
        """The environments that the claims of the issue name."""
        sides = (side for _, claim in self.claims for side in (claim.worse, claim.better) if side)
        return list(dict.fromkeys(side.environment for side in sides))

    def seconds(self, newest: str) -> float:
        """Return the estimated time, in seconds, to measure the issue in the claimed and in the newest release."""
        cells = {cell for claim in self.claims for cell in claims.list_cells(claim, [newest], Device.CPU)}
        return len(cells) * (USUAL_ROUNDS * (START + CLAIM_WARMUP + CLAIM_MEASURE) + START / 2.0)


@dataclass(frozen=True)
class Library:
    """The known issues, sorted by repository and number. `newest` is the environment of the newest release."""

    issues: Mapping[Issue, KnownIssue]
    newest: str

    @cached_property
    def families(self) -> list[str]:
        """The names of all families."""
        return sorted({family for known_issue in self.issues.values() for family in known_issue.families})

    def select(self, names: Iterable[str], family: str = "", *, every: bool = False) -> list[KnownIssue]:
        """Return the issues with the given names, the issues of a family, or all issues.

        Raises UsageError for an unknown name.
        """
        names = list(names)
        if names and (family or every):
            raise UsageError(
                f"{joined(names)} and {'--all' if every else '--family'} both select issues.", "Use one of the two."
            )
        if family and family not in self.families:
            raise make_unknown_error(family, self.families, "family")
        if not (names or family or every):
            raise UsageError(
                "No issue is specified.", "Example: harness repro T#40261. To list all issues: harness repro list"
            )
        if names:
            return [
                self.issues[issue] for issue in dict.fromkeys(claims.find_issue(text, self.issues) for text in names)
            ]
        return [known_issue for known_issue in self.issues.values() if not family or family in known_issue.families]

    def document(self, issues: Iterable[KnownIssue]) -> str:
        """Return a JSON document with the issues."""
        rows = [
            {
                "issue": known_issue.issue.short,
                "url": known_issue.issue.url,
                "families": known_issue.families,
                "environments": known_issue.environments,
                "seconds": round(known_issue.seconds(self.newest)),
                "claims": [
                    {"scenario": scenario.name, **{name: getattr(claim, name) for name in _CLAIM_FIELDS}}
                    for scenario, claim in known_issue.claims
                ],
            }
            for known_issue in issues
        ]
        return json.dumps(rows, indent=2) + "\n"


def load_library() -> Library:
    """Return the issues in the headers of the project's scenarios. Scenarios with an invalid file are skipped."""
    project = Project.find()
    by_issue = claims.group_by_issue(find_scenarios(project).scenarios.values())
    newest = claims.find_newest(load_environments(project))
    return Library({issue: KnownIssue(issue, by_issue[issue]) for issue in sorted(by_issue)}, newest)
