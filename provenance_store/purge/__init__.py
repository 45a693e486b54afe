"""Taking records and all that was made from them out of the lake, and proving it: docs/purge.md."""
