"""Operations on snapshots of instances."""
