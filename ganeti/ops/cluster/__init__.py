"""Operations on the cluster as a whole."""
