"""Tests of the assignments; like these they are not in the zip of the book that students download."""
