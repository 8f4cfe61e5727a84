"""Views built from the log, part by part; ``eventlog.projections`` offers them all.

``declared`` says what a projection is, ``advancing`` takes events a batch at a time, ``keeping_up`` runs one or many,
``beside`` builds a version beside the live one and swaps them, ``parking`` takes parked events up again, ``standing`` and
``comparing`` look at what is there, ``cli`` and what is beside it are the command.
"""
