"""The campaign on a cluster that Slurm runs: `python slurm.py` on its login node. Needs `pip install dask-jobqueue`."""

from __future__ import annotations

import signal

from campaign import run

before = signal.getsignal(signal.SIGINT)
from dask_jobqueue import SLURMCluster  # noqa: E402

signal.signal(signal.SIGINT, before)  # dask-jobqueue takes Ctrl-C for itself when it is imported

from distributed import Client  # noqa: E402


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
