"""Claims of upstream issues on the scenario of tests/factories.py."""

from harness.model.issues import Issue
from harness.model.scenario import Claim, ClaimSide, Scenario
from tests.factories import cell, scenario

#: The cells of CLAIM: fit in eager mode takes twice to four times as long as in graph mode.
WORSE, BETTER = cell("tf2.0", mode="eager"), cell("tf2.0", mode="graph")

CLAIM = Claim(
    issue=Issue("tensorflow/tensorflow", 33487),
    reported="fit takes three times as long in eager mode",
    worse=ClaimSide("tf2.0", {"mode": "eager"}),
    better=ClaimSide("tf2.0", {"mode": "graph"}),
    ratio=(2.0, 4.0),
    when={"call": "fit"},
    hardware="Colab CPU",
    fixed="2.1",
)

LEAK = Claim(
    issue=Issue("keras-team/keras", 13118),
    reported="fit leaks",
    worse=CLAIM.worse,
    bytes=(1000.0, 20000.0),
    of="memory growth",
    when={"call": "fit"},
)


def claimed_scenario(*claims: Claim) -> Scenario:
    """`scenario()` with these claims."""
    return scenario(claims=claims or (CLAIM,))
