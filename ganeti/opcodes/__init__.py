"""Opcodes: the requests that jobs are made of, one class each; they only describe.

The operations in ``ops`` do what they ask for. Other requests are in ``luxi/calls.py``.

Import from the module that has it: ``registry.find`` for a class by its OP_ID, ``wire`` to read
and write the JSON form, ``describe`` for documentation and schemas, the family modules
(``instance``, ``node``, ...) for the classes themselves. Nothing is imported here, so that a
program pays only for the family it uses.
"""
