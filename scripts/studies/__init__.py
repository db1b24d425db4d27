"""The studies behind the pages: their stages as a table, what is collected of them, and reports."""
