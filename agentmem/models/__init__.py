"""What lies between messages and a model's provider: requests, replies and failures."""
