"""The upstream issues whose claims scenarios check, and the selection of issues to measure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.model.errors import UsageError
from harness.model.issues import HOW_TO_WRITE, Issue
from harness.model.scenario import Claim, Scenario
from harness.model.texts import joined
from harness.plan import claims
from harness.plan.claims import UPSTREAM
from harness.plan.selection import make_unknown_error
from harness.project import Project
from harness.scenarios.catalog import find_scenarios


@dataclass(frozen=True)
class KnownIssue:
    """An issue, with all of its claims and their scenarios."""

    issue: Issue
    claims: Sequence[tuple[Scenario, Claim]]

    @property
    def families(self) -> list[str]:
        """The tags of the issue's scenarios, except UPSTREAM."""
        return list(dict.fromkeys(tag for scenario, _ in self.claims for tag in scenario.tags if tag != UPSTREAM))


@dataclass(frozen=True)
class Library:
    """The known issues, sorted by repository and number."""

    issues: Mapping[Issue, KnownIssue]

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
        for name in names:
            if not any(map(str.isdecimal, name)):
                raise UsageError(
                    f"{name!r} is not a valid issue name.", f"To search: harness repro list {name}. {HOW_TO_WRITE}"
                )
        if names:
            return [
                self.issues[issue] for issue in dict.fromkeys(claims.find_issue(text, self.issues) for text in names)
            ]
        return [known_issue for known_issue in self.issues.values() if not family or family in known_issue.families]


def load_library() -> Library:
    """Return the issues in the headers of the project's scenarios. Scenarios with an invalid file are skipped."""
    by_issue = claims.group_by_issue(find_scenarios(Project.find()).scenarios.values())
    return Library({issue: KnownIssue(issue, by_issue[issue]) for issue in sorted(by_issue)})
