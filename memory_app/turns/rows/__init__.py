"""The SQL of turns, and nothing else."""
