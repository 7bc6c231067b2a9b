"""What happens to one model request, step by step."""
