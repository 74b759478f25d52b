"""What the placement model is told of this cluster, and places that were chosen a moment ago."""
