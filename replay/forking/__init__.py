"""What-if: a copy of a stream under other circumstances, and the way of its decisions back. The source is only ever read."""
