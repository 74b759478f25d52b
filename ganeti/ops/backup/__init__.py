"""Operations on exports of instances."""
