"""Read tables again while the connector streams: who asks, how far it is, and when it is over."""
