"""An OpenAI-compatible server of our own on Transformers, for diffusion and research models. See `../README.md`."""
