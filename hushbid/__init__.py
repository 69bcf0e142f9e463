"""The operator's tools: command line, launcher, simulator, evaluation and demonstration datasets."""
