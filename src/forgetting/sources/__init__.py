"""Matrices that are read when they are needed, from files, folders and objects with row slices; checks of their rows."""
