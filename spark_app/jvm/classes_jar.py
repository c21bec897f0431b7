"""The name of the jar with the app's Java classes, and the folder of their sources."""

from __future__ import annotations

from pathlib import Path

CLASSES_JAR = "tributary-spark-classes.jar"
SOURCES = Path(__file__).with_name("java")
