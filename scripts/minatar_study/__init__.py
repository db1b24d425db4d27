"""The study of discount factors on MinAtar: its stages as shell scripts, tables and inspections."""
