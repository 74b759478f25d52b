"""Random requests made from our own OpenAPI document: nothing breaks, every status is documented.

``make test-api`` runs this for minutes, ``make check`` for some seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from local_cluster import Cluster
from rapi_server import PASSWORD, Api

SECONDS = int(os.environ.get("RANDOM_REQUESTS_SECONDS", "4"))
THOROUGH = SECONDS > 60
#: What ends this machine or does not end by itself; waiting takes its time.
LEFT_OUT = "powercycle|events" if THOROUGH else "powercycle|events|wait"
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
]
#: 501 and 503 are answers; 500, 502 and 504 are not.
CONFIG = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 501, 503]
"""
REAL = {
    "instance_name": ["web.example.com"],
    "node_name": ["node1.example.com", "node2.example.com"],
    "group_name": ["default"],
    "name": ["default", "web.example.com", "node2.example.com"],
    "resource": ["node", "instance", "job", "os"],
    "job_id": [1, 2, 3],
    "disk": [0],
}


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Api:
    assert cluster.add("web.example.com").code == 0
    return Api(cluster)


def with_real_names(document: dict[str, Any]) -> dict[str, Any]:
    """The document with names that exist among those that a path may have."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation["parameters"]:
                if parameter["in"] == "path" and parameter["name"] in REAL:
                    names = {"enum": REAL[parameter["name"]]}
                    parameter["schema"] = {"anyOf": [names, parameter["schema"]]}
    return document


def test_random_requests(api: Api, tmp_path: Path) -> None:
    document = with_real_names(api.get("/openapi.json"))
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    program = Path(sys.executable).with_name("schemathesis")
    ran = subprocess.run(
        [
            program,
            "run",
            "openapi.json",
            "--url",
            api.url,
            "--phases",
            "coverage,fuzzing" if THOROUGH else "fuzzing",
            "--max-examples",
            "100" if THOROUGH else "2",
            "--max-time",
            str(SECONDS),
            "--no-color",
            "--checks",
            ",".join(CHECKS),
            "--exclude-path-regex",
            LEFT_OUT,
            "--suppress-health-check",
            "all",
            "--request-timeout",
            "30",
            "--auth",
            f"alice:{PASSWORD}",
            "--tls-verify",
            "false",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS * 3 + 120,
        check=False,
    )
    print(ran.stdout[-1500:])
    assert ran.returncode == 0, ran.stdout[-12000:]
    assert api.get("/2/info")["master"] == "node1.example.com"
