"""How Plait is tested and measured. The product imports it only for commands that run it."""
