"""The SQL of tenancy, and nothing else."""
