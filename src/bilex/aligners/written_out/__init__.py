"""Gradients of small networks, written out for CPUs (LNMap).

They stand apart from the methods, whose list is made without numba.
"""
