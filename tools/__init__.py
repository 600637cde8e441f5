"""Programs of the maintainers: surveys, records, pages, planted faults. Not part of the package."""
