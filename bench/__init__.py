"""Measurements against the alternatives, run by hand: `make bench` prints the tables and writes bench/results.md."""
