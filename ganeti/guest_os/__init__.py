"""OS definitions: the scripts that put something bootable on the disks of an instance."""
