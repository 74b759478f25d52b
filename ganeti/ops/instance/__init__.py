"""Operations on instances."""
