"""The sections of the report, found by their decorator; each turns settings into a `Section` of plain data."""
