"""Studies as TOML files."""
