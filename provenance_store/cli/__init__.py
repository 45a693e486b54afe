"""The `headwater` command: a file per group of commands; each calls the library and prints what it says."""
