"""What people type and read on a terminal."""
