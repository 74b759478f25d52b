"""The input of the placement model, and places that are chosen but not in the configuration yet."""
