"""Files of disk images: what they are, what they may be, and how they become ours."""
