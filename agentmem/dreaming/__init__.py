"""Dreams: how conversations become curated facts, and never harm them."""
