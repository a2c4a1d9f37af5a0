"""The workflows `agent` and `agent_dream`: decisions and waiting, no I/O."""
