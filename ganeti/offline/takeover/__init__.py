"""Clusters of Ganeti 2.16 to 3.1 become ours while their guests run, and back again."""
