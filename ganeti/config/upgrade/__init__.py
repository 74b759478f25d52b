"""Configurations of other versions: brought to ours, and back. Pure: JSON values in and out.

``upgrade`` goes by the shape of what it finds, not by the version number: what is where it belongs
stays. So a file that was changed by hand, or stems from between two releases, is brought up too.
"""
