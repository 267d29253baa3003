"""The SQL of agents, and nothing else."""
