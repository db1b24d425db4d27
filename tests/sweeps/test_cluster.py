"""What a run may take of a cluster, on made nodes."""

import os

import pytest
import ray

from log_dqn.sweeps import cluster


@pytest.fixture
def nodes(monkeypatch):
    """Of three machines one is lost; the others have two CPUs, and four with a GPU."""
    found = [
        {"Alive": False, "Resources": {"CPU": 64}},
        {"Alive": True, "Resources": {"CPU": 2}},
        {"Alive": True, "Resources": {"CPU": 4, "GPU": 1}},
    ]
    monkeypatch.setattr(ray, "nodes", lambda: found)
    return found


def test_a_run_has_a_part_of_a_gpu_where_there_is_one(nodes):
    assert cluster.resources(3, None, 0.25) == {"cpu": 3, "gpu": 0.25}
    assert cluster.resources(2, 0, 0.25) == {"cpu": 2, "gpu": 0}
    del nodes[2]
    assert cluster.resources(2, None, 0.25) == {"cpu": 2, "gpu": 0}


def test_as_many_runs_at_a_time_as_there_are_cpus_that_may_be_used(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    with monkeypatch.context() as patch:
        started = {}
        patch.setattr(ray, "init", lambda **settings: started.update(settings))
        cluster.connect(None)
    assert (started["address"], started["num_cpus"]) == ("local", 1)


def test_a_run_that_no_node_can_hold_is_refused(nodes):
    with pytest.raises(
        ValueError, match=r"cpus_per_run is 8 .* 2 CPUs and 0 GPUs.*4 CPUs and 1 GPU"
    ):
        cluster.resources(8, None, 0.25)
