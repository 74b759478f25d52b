"""The configuration: one writer, immutable snapshots, a journal."""
