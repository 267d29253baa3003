"""Agents: persona, policy and default memories of an agent."""
