"""Marked notebooks for a course: their tasks, the grader, and the commands of `python -m assignments`."""
