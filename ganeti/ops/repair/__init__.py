"""Operations that repair what broke on a node."""
