"""The activities: all I/O, thin over `agentmem`."""
