"""What the machine offers: threads, free memory, and a line that shows progress."""
