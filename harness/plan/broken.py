"""Takes scenarios whose files are wrong out of a selection, so that the others run."""

from collections.abc import Collection
from dataclasses import replace

from harness.plan.names import resolve
from harness.plan.selection import Catalog, Selection


def without_broken(
    selection: Selection, catalog: Catalog, broken: Collection[str]
) -> tuple[Selection, Catalog, list[str]]:
    """The selection and the catalogue less what is `broken`, and every scenario that was selected, broken or not.

    `catalog` has the scenarios that can be read. Raises UsageError for a name that is neither.
    """
    chosen = resolve(selection.scenarios or ["*"], [*catalog.scenarios, *broken], "scenario")
    suite = catalog.suites.get(selection.suite)
    if suite:
        named = {part.scenario for part in suite.parts}
        chosen = [name for name in chosen if name in named]
    if not any(name in broken for name in chosen):
        return selection, catalog, chosen
    if selection.scenarios:
        selection = replace(selection, scenarios=[name for name in chosen if name not in broken])
    if suite:
        suite = replace(suite, parts=[part for part in suite.parts if part.scenario not in broken])
        catalog = replace(catalog, suites={**catalog.suites, suite.name: suite})
    return selection, catalog, chosen
