"""Steps that change the disks, NICs and settings of an instance."""
