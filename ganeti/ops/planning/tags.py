"""The form of tags."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ganeti import constants, errors

_TAG = re.compile(r"[\w.+*/:@-]+")


def check(tags: Iterable[str]) -> None:
    """Refuse a tag that is too long or has other characters; TagError."""
    for tag in tags:
        if not tag or len(tag) > constants.MAX_TAG_LEN or not _TAG.fullmatch(tag):
            raise errors.TagError(
                f"'{tag[:140]}' is not a tag: up to {constants.MAX_TAG_LEN} letters, digits and"
                " any of _ . + * / : @ -"
            )
