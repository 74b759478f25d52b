"""Operations on networks."""
