"""The campaign on Kubernetes, with Dask's operator installed. Needs `pip install dask-kubernetes`, and an image with longhaul in it:

    FROM python:3.13-slim
    COPY longhaul-*.whl /tmp/
    RUN pip install "$(ls /tmp/longhaul-*.whl)[dask]" s3fs
"""

from __future__ import annotations

from typing import Any

from campaign import run
from dask_kubernetes.operator import KubeCluster, make_cluster_spec
from distributed import Client


def spec(image: str, workers: int) -> dict[str, Any]:
    """Workers of one core and 2 GiB."""
    one = {"limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
    made: dict[str, Any] = make_cluster_spec(name="longhaul", image=image, n_workers=workers, resources=one)
    made["spec"]["worker"]["spec"]["containers"][0]["args"] += ["--nthreads", "1"]
    return made


if __name__ == "__main__":
    made = spec("registry.example/longhaul:latest", 50)
    with KubeCluster(custom_cluster_spec=made) as cluster, Client(cluster) as client:
        # Pods come and go; what they have measured lies in a bucket.
        print(run(client, "s3://longhaul/campaign").to_xarray())
