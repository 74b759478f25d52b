"""Operations through the out-of-band helper of nodes."""
