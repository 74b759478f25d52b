"""Tell whether secret parameters reached a running job."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.opcodes.hidden import Hidden
from ganeti.opcodes.test import OpTestOsParams
from ganeti.ops.operation import Operation


class TestOsParams(Operation[OpTestOsParams, None]):
    """Names them; their values appear nowhere."""

    __test__ = False  # not a test case, whatever its name

    def check(self) -> None:
        if not self.op.osparams_secret:
            raise errors.make_invalid_error("give at least one secret parameter")

    def run(self) -> None:
        found = self.op.osparams_secret or {}
        lost = [
            name
            for name, value in found.items()
            if not isinstance(value, Hidden) or value.lost or value.reveal() in (None, "")
        ]
        if lost:
            raise errors.OpExecError(f"without value: {join_names(sorted(lost))}")
        self.ctx.log(f"Secret OS parameters with a value: {join_names(sorted(found))}")
