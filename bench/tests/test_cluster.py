"""Families on a Ray cluster of several nodes: a node dies, and the results are those of a local run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import runner_world as world
from bilex import BilexError
from bilex_bench.cluster import RayExecutor, needed
from bilex_bench.engine import Begun, run
from bilex_bench.local import LocalExecutor
from bilex_bench.results import Setup, families

OBJECT_STORE = 80 << 20


def node(**resources: float) -> dict[str, Any]:
    return {"Resources": resources, "Alive": True}


def test_needs_are_cut_down_to_the_largest_machine() -> None:
    nodes = [node(CPU=2.0, memory=4.0 * 2**30), node(CPU=8.0, GPU=2.0, memory=16.0 * 2**30)]
    assert needed(nodes, "auto") == {"num_cpus": 4, "num_gpus": 1, "memory": None}
    assert needed(nodes, "cpu") == {"num_cpus": 4, "num_gpus": 0, "memory": None}
    assert needed(nodes[:1], "auto") == {"num_cpus": 2, "num_gpus": 0, "memory": None}
    assert needed(nodes, "auto", cpus=16, gpus=0.5) == {"num_cpus": 8, "num_gpus": 0.5, "memory": None}
    assert needed(nodes, "cpu", gigabytes=100)["memory"] == 16 << 30
    assert needed(nodes, "cpu", gigabytes=3)["memory"] == 3 << 30
    with pytest.raises(BilexError, match="1 GPUs, and the largest machine has 0"):
        needed(nodes[:1], "auto", gpus=1)


def test_missing_ray_is_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    folder = world.make_folder(tmp_path / "data")
    with pytest.raises(BilexError, match=r"pip install 'bilex-bench\[cluster\]'"):
        next(run(RayExecutor(world.plan_for(folder, tmp_path)), [[world.setup()]]))


class Cluster:
    """A head without cores and two nodes with one each, all on this machine."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as RayCluster

        head = {"num_cpus": 0, "object_store_memory": OBJECT_STORE, "include_dashboard": False}
        self._cluster = RayCluster(initialize_head=True, head_node_args=head)
        self.nodes = [self._cluster.add_node(num_cpus=1, object_store_memory=OBJECT_STORE) for _ in range(2)]
        self.address = self._cluster.address

    def kill(self, name: str) -> None:
        """Kill a node and all that runs on it."""
        [chosen] = [n for n in self.nodes if n.node_id == name]
        self.nodes.remove(chosen)
        self._cluster.remove_node(chosen, allow_graceful=False)

    def shutdown(self) -> None:
        self._cluster.shutdown()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    made = Cluster()
    yield made
    made.shutdown()


class Assassin(world.Noted):
    """Kills the node of the third family as soon as that has begun."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster = cluster
        self.killed: list[str] = []

    def began(self, event: Begun) -> None:
        if len(self.begun) == 3 and not self.killed:
            self.killed.append(event.node)
            self.cluster.kill(event.node)


@pytest.mark.slow
@pytest.mark.promise
def test_a_node_dies_in_the_middle_and_the_results_are_those_of_a_local_run(
    cluster: Cluster, tmp_path: Path
) -> None:
    folder = world.make_folder(tmp_path / "data")
    lm = world.make_encoder(tmp_path / "tiny")
    tuning = {"negatives": 3, "batch_size": 30, "epochs": 1, "induced": 0}

    def slow(pair: str, seeds: str, **more: Any) -> Setup:
        log = str(tmp_path / "log")
        return world.setup(
            "troublesome",
            pair=pair,
            seeds=seeds,
            settings={"trouble": "sleep", "log": log, "seconds": 1.0},
            **more,
        )

    setups = [slow(pair, seeds) for pair in world.PAIRS for seeds in ("1k", "500")]
    setups += [slow("aa-bb", "1k", lm=lm, tuning=tuning, mixing=mixing) for mixing in (0.3, "auto")]
    dies_once = {"trouble": "die", "times": 1, "log": str(tmp_path / "deaths")}
    setups += [world.setup("troublesome", settings=dies_once), world.setup("advanced")]
    setups += [world.setup("troublesome", settings={"trouble": "error"})]
    heard = Assassin(cluster)
    estimated = {setup.family: 0.3 for setup in setups}
    executor = RayExecutor(world.plan_for(folder, tmp_path), cluster.address, cpus=1)
    heard.take(run(executor, families(setups), estimated))
    assert len(heard.killed) == 1 and len(heard.results) == len(setups)
    assert heard.most_at_once == 2, "both nodes worked"
    assert any("node" in reason for reason in heard.retried), "a family went down with its node"
    assert len(world.fits_logged(tmp_path / "deaths")) == 2, "a family that killed its worker was tried again"
    failed = [r for r in heard.results if r.status == "failed"]
    assert [r.error for r in failed] == ["this method fails on purpose; do not use it."]
    here = world.Noted()
    here.take(run(LocalExecutor(world.plan_for(folder, tmp_path / "here"), 1), families(setups)))
    assert world.outcomes(here.results) == world.outcomes(heard.results)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nobody-is-there", "ray://127.0.0.1:10001", "auto"])
def test_no_cluster_at_an_address_is_reported_in_one_sentence(address: str, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    folder = world.make_folder(tmp_path / "data")
    with pytest.raises(BilexError, match="no Ray cluster answers"):
        next(run(RayExecutor(world.plan_for(folder, tmp_path), address), [[world.setup()]]))
