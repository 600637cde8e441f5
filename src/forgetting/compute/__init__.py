"""Computing: compiled loops, numbers of 31 digits, threads, devices, and workers in other processes."""
