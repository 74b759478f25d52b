"""Verify the certificates of the cluster and of its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.candidates import without_old_certificates
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.net import certs, expiry, pem
from ganeti.net.expiry import Expiry
from ganeti.ops.verification.report import Report
from ganeti.paths import Paths

_CHECK = "certificates"


def checks(paths: Paths) -> JsonObject:
    """Return the checks for the nodes; none when the master has no authority to compare with."""
    try:
        return {_CHECK: paths.ca_cert.read_text(encoding="ascii")}
    except (OSError, ValueError):  # reported by :func:`authority`
        return {}


def authority(report: Report, cluster: str, paths: Paths, now: float) -> None:
    """Report what is wrong with the authority, as this node (the master) has it."""
    path = paths.ca_cert
    remedy = "gnt-cluster renew-crypto --new-cluster-certificate renews it"
    try:
        # Its key must be the one of a certificate in the file.
        certs.read_authority(paths.ca_key, path)
        info = certs.inspect(path)
    except errors.X509CertError as err:
        report.error("ECLUSTERCERT", "cluster", cluster, ": ".join(map(str, err.args)))
        return
    level, text = expiry.judge(info, now)
    if level is not Expiry.OK:
        add = report.error if level is Expiry.ERROR else report.warning
        add("ECLUSTERCERT", "cluster", cluster, f"{path}: {text}; {remedy}")


def renewal(report: Report, config: Config, paths: Paths) -> None:
    """Report a renewal that did not end, or did not reach all nodes."""
    name = config.cluster.cluster_name
    accepted = config.cluster.candidate_certs
    several = paths.ca_cert.exists() and len(pem.split(paths.ca_cert.read_bytes())) > 1
    if several or without_old_certificates(accepted) != accepted:
        what = "a renewal of certificates was interrupted, so old ones are still accepted"
    elif paths.previous_crypto.exists():
        what = "a node was down during a renewal of certificates"
    else:
        return
    report.warning("ECLUSTERCERT", "cluster", name, f"{what}: run gnt-cluster renew-crypto")


def node(report: Report, cluster: str, item: Node, answers: Mapping[str, object]) -> None:
    """Report what a node found in its own files; the codes are those of the cluster's trust."""
    found = answers.get(_CHECK) or []
    if not isinstance(found, list):
        report.error("ECLUSTERCERT", "cluster", cluster, f"node {item.name}: {found}")
        return
    for file, level, text in found:
        code = "ECLUSTERCLIENTCERT" if file == "client.pem" else "ECLUSTERCERT"
        add = report.error if level == "error" else report.warning
        add(code, "cluster", cluster, f"node {item.name}: {text}")
