"""What the adapters of vLLM share: its command line, drafting, denoising settings, what its log says."""
