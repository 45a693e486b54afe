"""The lake itself: where datasets and their versions lie, and what makes new ones. Imports errors alone."""
