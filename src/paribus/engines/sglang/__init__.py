"""What the adapter of SGLang reads in its log."""
