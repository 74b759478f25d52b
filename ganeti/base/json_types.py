"""Type of a decoded JSON object, for annotations; imports next to nothing, for the commands."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
