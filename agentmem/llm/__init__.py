"""The code between messages and a model's provider: requests, responses and errors."""
