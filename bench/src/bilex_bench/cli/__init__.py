"""The commands `bilex benchmark`, `bilex data` and `bilex align-grid`, registered as entry points."""
