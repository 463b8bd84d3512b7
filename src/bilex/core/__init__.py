"""What every other package builds on: errors, files, locks, manifests, progress, devices and languages."""
