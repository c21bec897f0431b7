"""Examples of lakes. Each folder has a README."""
