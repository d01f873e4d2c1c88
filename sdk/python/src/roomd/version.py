"""Owns the version. It is the service's: servers of the same major version are spoken to."""

VERSION = "0.1.0"
