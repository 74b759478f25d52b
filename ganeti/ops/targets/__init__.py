"""The targets of operations: how they are found and locked."""
