"""Callbacks that report trials to experiment trackers, public as `recollect.trackers`."""
