"""Hardware profiles: reading, checking and conversion to devices, machines, links and stores."""
