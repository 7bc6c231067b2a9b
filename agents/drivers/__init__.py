"""Small programs that drive agent libraries; each runs in the library's own environment, without this project."""
