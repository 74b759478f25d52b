"""Operations on node groups."""
