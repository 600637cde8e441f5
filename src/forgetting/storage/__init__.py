"""Files: read as data, written whole or not at all."""
