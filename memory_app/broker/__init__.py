"""How messages are carried: the broker's library with what it lacks."""
