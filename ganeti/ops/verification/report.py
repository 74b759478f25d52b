"""The lines that verification prints, in the form that scripts know."""

from __future__ import annotations

from collections.abc import Collection

from ganeti.model.finding import Finding
from ganeti.ops.operation import Context


class Report:
    """Collects findings; :attr:`ok` turns false with the first error that is not ignored."""

    def __init__(self, ctx: Context, *, error_codes: bool, ignored: Collection[str]) -> None:
        self._ctx = ctx
        self._error_codes = error_codes
        self._ignored = {str(code) for code in ignored}
        self.ok = True
        self.findings: list[Finding] = []

    def section(self, title: str) -> None:
        self._ctx.log(f"* {title}")

    def error(self, code: str, kind: str, name: str, text: str) -> None:
        """A finding about an object of a kind (cluster, node, instance, group)."""
        level = "ERROR"
        if code in self._ignored:
            level = "WARNING"
        else:
            self.ok = False
        self._line(level, code, kind, name, text)

    def warning(self, code: str, kind: str, name: str, text: str) -> None:
        self._line("WARNING", code, kind, name, text)

    def _line(self, level: str, code: str, kind: str, name: str, text: str) -> None:
        self.findings.append(Finding(level.lower(), code, kind, name, text))
        if self._error_codes:
            self._ctx.log(f"  - {level}:{code}:{kind}:{name}:{text}")
        else:
            self._ctx.log(f"  - {level}: {kind} {name}: {text}".replace("cluster : ", "cluster: "))
