"""What changing a job is worth: levers, actions, sizes, swaps, sensitivity and ways to pay."""
