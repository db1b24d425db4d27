"""What a run is on disk."""
