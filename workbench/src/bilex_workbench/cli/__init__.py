"""The commands that the workbench adds to `bilex`: `serve` and `review`."""
