"""The jar of the app's Java classes: its name, and the folder of its sources."""

from __future__ import annotations

from pathlib import Path

CLASSES_JAR = "tributary-spark-classes.jar"
SOURCES = Path(__file__).with_name("java")
