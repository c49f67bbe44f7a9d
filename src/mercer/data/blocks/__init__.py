"""Rows that never fit into memory: sources, blocks, one-pass statistics, and predictions written block by block."""
