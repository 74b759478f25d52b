"""Opcodes: everything that can be asked of a cluster, one class each.

Import from the module that has it: ``registry.find`` for a class by its OP_ID, ``wire`` to read
and write the JSON form, ``describe`` for documentation and schemas, the family modules
(``instance``, ``node``, ...) for the classes themselves. Nothing is imported here, so that a
program pays only for the family it uses.
"""
