"""The examples for clusters, as far as they can be tried without one."""

import pods
import slurm
from campaign import DELAYS, LOSSES, scenario


def test_the_campaign_has_ten_thousand_cases() -> None:
    cases = len(set(DELAYS)) * len(set(LOSSES)) * len(scenario().schemes) * scenario().seeds
    assert cases == 10_000


def test_slurm_is_asked_for_jobs_of_one_core() -> None:
    with slurm.cluster("~/mine") as cluster:
        script = cluster.job_script()
    for line in ["#SBATCH -p compute", "#SBATCH -t 02:00:00", "#SBATCH --cpus-per-task=1", "source ~/mine/bin/activate"]:
        assert line in script, script
    assert "dask_worker" in script and "--nthreads 1" in script


def test_kubernetes_is_asked_for_workers_of_one_core() -> None:
    spec = pods.spec("registry.example/longhaul:1", 7)
    assert (spec["kind"], spec["spec"]["worker"]["replicas"]) == ("DaskCluster", 7)
    worker = spec["spec"]["worker"]["spec"]["containers"][0]
    assert worker["args"][-2:] == ["--nthreads", "1"]
    assert worker["resources"]["limits"]["cpu"] == "1"
