"""How numbers are computed: compiled loops, 31 digits, threads, devices, and workers in other processes."""
