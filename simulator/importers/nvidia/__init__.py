"""What nvidia-smi shows of a machine, as a node profile."""
