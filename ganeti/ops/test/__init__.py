"""Operations that test the cluster manager itself."""
