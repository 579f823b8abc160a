"""The draft of a plan. Each step of `plan` returns it with more fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import FileError, HarnessError
from harness.model.gpu import CPU_ALONE, Gpu, GpuHost
from harness.model.launch import Limits
from harness.model.run import StandIn, Unavailable
from harness.model.scenario import DEFAULT_SUITE, Cell, Scenario, Suite
from harness.plan.claims import ScenarioClaim
from harness.plan.selection import Catalog, Selection
from harness.project import Project
from harness.session import trust
from harness.session.request import LaunchRequest
from harness.toml import Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An unfinished plan, after some of the steps.

    - `request`; `project`
    - `choose_machine` adds the `devices` of the cells, the baseline first, the `limits` of launches, the machine that
      has the GPUs (`gpu_host`), and the `gpus` of each launch
    - `load_scenarios` adds the `catalog` of scenarios and suites with the requested axes, the `suites` without them
      and the `findings` in their file, the `selection`, the invalid scenarios that are `refused`, and the requested
      `claims`
    - `resolve_environments` adds all `environments` by name, the `requested` names and globs, the `baseline` (empty:
      none was requested), the errors of release lines without a wheel (`line_errors`), the kinds of environments with a
      package from a source (`packages`), and the bases of environments whose wheel isn't built (`unbuilt`)
    - `select_cells` adds the `selected` cells, the same as `cells`, the `names` of their environments, the baseline
      first, and claims that can't be measured (`unavailable`)
    - `use_fallbacks` replaces environments in `cells` and `names`, and adds the `fallbacks`
    - `check_cells` keeps the `cells` that can run, and adds the others to `unavailable`; it adds the `used` scenarios
      of both, the locks of the environments by name (`requirements`), and the name of the baseline (`reference`)
    """

    request: LaunchRequest
    project: Project
    devices: Sequence[Device] = ()
    limits: Limits = field(default_factory=Limits)
    gpu_host: GpuHost = CPU_ALONE
    gpus: Sequence[Gpu] = ()
    catalog: Catalog = field(default_factory=lambda: Catalog((), {}, {}))
    suites: Mapping[str, Suite] = field(default_factory=dict)
    findings: Findings | None = None
    selection: Selection = field(default_factory=Selection)
    refused: Mapping[str, FileError] = field(default_factory=dict)
    claims: Sequence[ScenarioClaim] = ()
    environments: Mapping[str, Environment] = field(default_factory=dict)
    requested: Sequence[str] = ()
    baseline: str = ""
    line_errors: Mapping[str, HarnessError] = field(default_factory=dict)
    packages: Mapping[str, trust.Kind] = field(default_factory=dict)
    unbuilt: Mapping[str, Environment] = field(default_factory=dict)
    selected: Sequence[Cell] = ()
    cells: Sequence[Cell] = ()
    names: Sequence[str] = ()
    fallbacks: Sequence[StandIn] = ()
    used: Mapping[str, Scenario] = field(default_factory=dict)
    requirements: Mapping[str, Requirement] = field(default_factory=dict)
    unavailable: Sequence[Unavailable] = ()
    reference: str = ""

    @property
    def suite(self) -> str:
        """The name of the requested suite; empty if scenarios or claims are requested."""
        return self.request.suite or ("" if self.request.scenarios or self.request.claims else DEFAULT_SUITE)
