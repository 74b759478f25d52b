"""Operations: what opcodes do. One verb a file, found by the opcode's name (see registry)."""
