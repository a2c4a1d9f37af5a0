"""The offline model: a deterministic stand-in that follows the tool protocol by fixed rules."""
