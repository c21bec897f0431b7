"""The observability stack: alarms and a dashboard."""
