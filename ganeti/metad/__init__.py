"""``ganeti-metad``: tells guests what their node keeps for them, over a network of their own."""
