"""Operations on instances for the case that the instance is a reservation."""
