"""One file per section of the report; each turns settings into a `Section` of plain data."""
