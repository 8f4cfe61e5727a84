"""What others do with the same work. One module a rival; none of them is imported unless it is measured."""
