"""Matrices that are read when they are needed: files, folders, objects with row slices; checks of their rows."""
