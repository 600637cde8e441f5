"""Files: checked when read, and written atomically."""
