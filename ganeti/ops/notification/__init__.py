"""Operations on notifications."""
