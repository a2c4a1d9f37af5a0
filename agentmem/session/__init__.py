"""A session: its queue of turns, its work in the background, its change to a new run."""
