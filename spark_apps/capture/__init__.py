"""The instrumentation SDK: what a job adds to be captured. Imports the library's model, transport and lake."""
