"""Verify that master candidates have their copies of images, and that none is half made. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ganeti.base.text import plural
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.ops.verification.report import Report

CHECK = "images"
_MEND = "gnt-cluster redist-conf"


def judge(
    report: Report,
    config: Config,
    nodes: Iterable[Node],
    answers: Mapping[str, Mapping[str, object]],
) -> None:
    """Compare what each node keeps with what it should."""
    for node in nodes:
        found = answers.get(node.uuid, {}).get(CHECK)
        if found is None:
            continue
        if not isinstance(found, dict):
            report.error("ENODEFILECHECK", "node", node.name, f"images: {found}")
            continue
        for image in config.images.values() if node.master_candidate else ():
            if image.ready and found.get(image.uuid) != image.file_size:
                what = "is damaged" if image.uuid in found else "is missing"
                report.error(
                    "ENODEFILECHECK",
                    "node",
                    node.name,
                    f"its copy of image {image.name} {what}; {_MEND} copies it again",
                )
        extra = [uuid for uuid in found if uuid not in config.images]
        if extra:
            text = f"it has files of {plural(len(extra), 'image')} that were removed; {_MEND}"
            report.warning("ENODEORPHANFILE", "node", node.name, f"{text} removes them")


def check_interrupted(report: Report, config: Config, working: Collection[int]) -> None:
    """Images whose job was killed; ``working`` are the jobs that run."""
    for image in config.images.values():
        if image.creating is not None and image.creating not in working:
            report.error(
                "ECLUSTERCFG",
                "cluster",
                config.cluster.cluster_name,
                f"job {image.creating} was interrupted while it made image {image.name}; remove"
                f" what is left of it with gnt-image remove {image.name}",
            )
