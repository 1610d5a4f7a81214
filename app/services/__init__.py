"""What the service does, without any knowledge of HTTP."""
