"""Hardware profiles on disk: read, checked and turned into devices, machines, links and stores."""
