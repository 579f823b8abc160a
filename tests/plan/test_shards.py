from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.model.launch import Interleave
from harness.model.run import Plan
from harness.plan.groups import group
from harness.plan.shards import assign_shards, balance_shards, cells_of, list_aspects, plan_digest, shard
from tests.factories import cells, scenario
from tests.runs import run

GROUPS = [f"step cpu size={size}" for size in range(200)]
names = st.lists(st.text(max_size=12), unique=True, max_size=20)


@given(names, st.integers(1, 9))
def test_each_group_is_in_one_shard_wherever_it_is_asked(groups, of):
    places = assign_shards(groups, of)
    assert list(places) == groups
    assert set(places.values()) <= set(range(1, of + 1))
    assert assign_shards(groups[::-1], of) == places


def test_with_one_shard_more_groups_stay_or_go_to_the_new_one():
    before, after = assign_shards(GROUPS, 4), assign_shards(GROUPS, 5)
    moved = {group for group in GROUPS if before[group] != after[group]}
    assert {after[group] for group in moved} == {5}
    assert 20 <= len(moved) <= 60
    assert min(Counter(after.values()).values()) >= 25


@given(st.dictionaries(st.text(max_size=5), st.none() | st.floats(0.0, 1e3), max_size=20), st.integers(1, 6))
def test_shards_are_balanced_and_keep_groups_together_that_take_no_longer_than_an_average_shard(seconds, of):
    together = {group: "even" if index % 2 else "odd" for index, group in enumerate(sorted(seconds))}
    places, pairs = balance_shards(seconds, of), balance_shards(seconds, of, together)
    assert places.keys() == pairs.keys() == seconds.keys()
    backwards = dict(reversed(seconds.items()))
    assert (places, pairs) == (balance_shards(backwards, of), balance_shards(backwards, of, together))
    if all(second is not None for second in seconds.values()):
        lengths = {name: length or 0.0 for name, length in seconds.items()}
        loads = [sum(lengths[name] for name, at in places.items() if at == number) for number in range(1, of + 1)]
        # a third longer than the best, at most
        assert max(loads) <= sum(lengths.values()) / of + max(lengths.values(), default=0.0) + 1e-9
        for text in ("even", "odd"):
            groups = [group for group in seconds if together[group] == text]
            if sum(lengths[group] for group in groups) < 0.999 * sum(lengths.values()) / of:
                assert len({pairs[group] for group in groups}) <= 1


def test_long_groups_are_divided_and_unknown_ones_are_as_long_as_the_others():
    places = balance_shards(dict.fromkeys("abcd", 1.0), 2, dict.fromkeys("abc", "one"))
    assert Counter(places.values()) == {1: 2, 2: 2}
    places = balance_shards({"a": 10.0, "b": 10.0, "new": None, "other": None}, 2)
    assert Counter(places.values()) == {1: 2, 2: 2}
    assert Counter(balance_shards(dict.fromkeys("abcd"), 2).values()) == {1: 2, 2: 2}


def digest(plan: Plan, seed_counts: bool = True, harness: str = "1") -> str:
    aspects = list_aspects(
        plan, harness=harness, reference="tf1.14", sources={"step": "ab"}, packages={"tf1.14": {"a": "1"}}
    )
    return plan_digest(aspects, cells_of(plan.groups), without="" if seed_counts else "the seed")


def test_a_plan_has_one_digest_on_every_machine_and_another_where_something_else_is_asked():
    plan = run().plan
    groups = group(cells(calls=("fit", "batch")), {"step": scenario()}, "tf1.14")
    other_machine = replace(plan, limits=replace(plan.limits, memory_bytes=1, cpus=[7] if plan.limits.cpus else None))
    assert digest(plan) == digest(other_machine)
    others = [
        replace(plan, seed=plan.seed + 1),
        replace(plan, rounds=plan.rounds + 1),
        replace(plan, margin=0.5),
        replace(plan, interleave=Interleave.TURNS),
        replace(plan, sampling=replace(plan.sampling, measure_seconds=9.0)),
        replace(plan, groups=groups),
    ]
    assert len({digest(plan), digest(plan, harness="2"), *map(digest, others)}) == 2 + len(others)
    assert digest(plan, seed_counts=False) == digest(others[0], seed_counts=False)


def test_a_shard_says_where_the_other_groups_are():
    plan = replace(run().plan, groups=group(cells(calls=("fit", "batch")), {"step": scenario()}, "tf1.14"))
    first, second = (entry.name for entry in plan.groups)
    part = shard(plan, 1, 2, {first: 1, second: 2}, "abc")
    assert (str(part), part.plan, part.elsewhere) == ("1/2", "abc", {second: 2})
