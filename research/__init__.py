"""Measurements on real data; each module is a command."""
