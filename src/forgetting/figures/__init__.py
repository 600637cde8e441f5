"""Figures and tables as plain data, and thin renderers to matplotlib, SVG, the terminal, CSV and LaTeX."""
