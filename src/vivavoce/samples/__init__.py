"""What we ask and what is known about the right answer: samples and datasets."""
