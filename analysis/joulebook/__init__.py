"""Energy numbers from power logs that survive an argument.

Pure methods: polars frames in, frozen results out. Nothing here reads a file, a clock or a database.
"""
