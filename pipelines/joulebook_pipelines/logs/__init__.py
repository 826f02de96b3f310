"""What adapters share: reading text in blocks, splitting tables, cells with units, time stamps, the adapter contract."""
