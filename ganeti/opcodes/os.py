"""Opcodes for what nodes have installed: OS definitions and storage providers."""

from __future__ import annotations

from typing import ClassVar

from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode


class OpOsDiagnose(OpCode, tag="OP_OS_DIAGNOSE", kw_only=True):
    """Return which OS definitions the nodes have and whether they can be used."""

    result_type: ClassVar[str] = "[[any]]"

    output_fields: p.OutputFields
    names: p.Names = []


class OpExtStorageDiagnose(OpCode, tag="OP_EXT_STORAGE_DIAGNOSE", kw_only=True):
    """Return which providers of external storage the nodes have and whether they can be used."""

    result_type: ClassVar[str] = "[[any]]"

    output_fields: p.OutputFields
    names: p.Names = []
