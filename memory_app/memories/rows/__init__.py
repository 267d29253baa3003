"""The SQL of memories, and nothing else."""
