"""What the DICs should have written, computed another way: polars over the lake's files, from what each DIC is told to
mean. A purge is verified by these, so they import nothing of the DICs, nor of what recomputes records."""
