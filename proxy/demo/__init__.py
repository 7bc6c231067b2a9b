"""The demonstration: a long session between a scripted model and a small agent, through the real proxy."""
