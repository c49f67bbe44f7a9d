"""Threads, tiles, the memory budget and progress: how work is cut up and run. Knows no kernel."""
