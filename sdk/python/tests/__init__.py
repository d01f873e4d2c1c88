"""The SDK's tests. They need a daemon: test/api/mcp/sdk-python.test.ts runs them."""
