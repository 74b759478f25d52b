"""Machines for tests: QEMU guests that boot Debian's kernel on this machine's own root.

Nothing is installed here and no disk image is built; ``doc/design/hosts.md`` tells how it is put
together.
"""
