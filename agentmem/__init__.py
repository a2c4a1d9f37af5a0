"""Durable memory for LLM agents on Temporal."""
