"""Operations on guest OS definitions."""
