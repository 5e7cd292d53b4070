"""From a question to its answer, in the order of the rooms: read, plan, price, run, show.

`stages.py` lists the functions that a question passes, one for each room.
"""
