"""Steps on guests: start and stop them, change their devices, tell nodes who may run them."""
