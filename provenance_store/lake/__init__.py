"""The lake itself: where datasets and their versions lie, what is known of them, what makes new ones. Imports model."""
