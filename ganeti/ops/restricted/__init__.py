"""Operations that run commands which the nodes restrict."""
