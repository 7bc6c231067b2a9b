"""What leaves a body, what comes in its place, and what must hold afterwards; pure, without I/O."""
