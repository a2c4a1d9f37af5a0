"""The code between messages and a model's provider: requests, replies and failures."""
