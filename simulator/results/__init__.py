"""What a prediction holds, and what is made of it: metrics, cost, assumptions, what binds."""
