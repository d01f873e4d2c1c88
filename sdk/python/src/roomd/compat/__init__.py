"""Interfaces of other sandbox SDKs, on sandboxes of roomd. Nothing here is imported by the package itself."""
