"""The agent in workflow code: its loop, its tool calls, approvals and hooks."""
