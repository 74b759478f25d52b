"""What operations on instances do when the instance is a reservation."""
