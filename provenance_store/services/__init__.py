"""The local services of `headwater up`: started, watched, stopped. Imported by the command line and tests only."""
