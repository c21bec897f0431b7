"""Java code that speeds up Spark. Each class has one Python bridge."""
