"""The paper's small-scale experiments (sections 3 to 5, Appendices A and B)."""
