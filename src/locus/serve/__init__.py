"""The service: `locus serve` answers over HTTP where an image was taken, and what else its features tell."""
