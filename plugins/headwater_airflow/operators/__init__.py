"""A task each: they hold little and call the library."""
