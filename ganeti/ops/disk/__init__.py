"""Operations on single disks, with or without an instance."""
