"""What the recorded tables name is there, except what is listed as missing."""

from __future__ import annotations

import contract
import pytest


@pytest.mark.parametrize("table", contract.TABLES)
def test_what_is_recorded_is_there(table: str) -> None:
    wanted, have = contract.TABLES[table]()
    contract.check_table(table, wanted, have)
