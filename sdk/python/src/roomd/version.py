"""The version, which is the service's: servers of the same major version are supported."""

VERSION = "0.1.0"
