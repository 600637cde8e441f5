"""Thin renderers: plain data in, a page, a picture, a file or a few lines out."""
