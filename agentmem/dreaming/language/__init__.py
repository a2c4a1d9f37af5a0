"""What words say: folding and overlap, names and numbers, dates in many languages."""
