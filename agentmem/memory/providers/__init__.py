"""The stores that hold facts, and the protocol that they keep."""
