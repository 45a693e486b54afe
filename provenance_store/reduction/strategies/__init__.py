"""The stream reducers of paper 003 and the one it compares with, for streams without a manifest; bench imports it."""
