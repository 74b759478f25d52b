"""Operations on providers of external storage."""
