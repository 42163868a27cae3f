"""The campaign on a cluster that Slurm runs: `python slurm.py` on its login node. Needs `pip install dask-jobqueue`."""

from __future__ import annotations

from campaign import run
from dask_jobqueue import SLURMCluster
from distributed import Client


def cluster(environment: str = "~/longhaul") -> SLURMCluster:
    """Jobs of one core; ``environment`` is a virtual environment with longhaul in it, which all nodes see."""
    return SLURMCluster(
        queue="compute",
        walltime="02:00:00",
        cores=1,
        processes=1,
        memory="2 GB",
        job_script_prologue=[f"source {environment}/bin/activate"],
    )


if __name__ == "__main__":
    with cluster() as jobs, Client(jobs) as client:
        jobs.scale(jobs=100)
        # What a job has measured is kept when its time is over; the next one goes on from there.
        print(run(client, "campaign").to_xarray())
