"""Layers, one family a file."""
