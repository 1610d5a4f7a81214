"""Requests and answers of the JSON API, by subject: the wire contract, and nothing else."""
