"""Operations on tags."""
