"""Memories: the one write path, facts in time, entities, feedback, the query graph, and capacity."""
