"""A trained agent plays, and its values are drawn beside the screen."""
