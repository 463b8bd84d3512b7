"""The commands `bilex benchmark` and `bilex data`, registered in the entry-point group `bilex.commands`."""
