"""The commands that people type on a terminal, and the text that they read there."""
