"""From runs to report: reading, scores, statistics, figures, page."""
