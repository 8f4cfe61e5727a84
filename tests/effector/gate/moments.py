"""The moments inside a tool at which its effector may die."""

BEGUN = "tool begun"
MADE = "effect made"
