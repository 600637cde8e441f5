"""What calls cost: time and memory against T, d, rank, k, N and runs, as fitted exponents, and the page about them."""
