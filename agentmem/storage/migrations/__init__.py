"""The store's schema, step by step; run on open by `agentmem.storage.migrate`."""
