"""The DICs that come with Headwater, written as a user would write them. Imports the capture SDK."""
