"""Whether graphs, datasets and runs are as they should be: gates between steps, and looks at the whole lake.

Imported by the plugins and the command line.
"""
