"""Operations on reservations."""
