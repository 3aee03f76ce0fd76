"""From a trajectory to grades, rewards and gates."""
