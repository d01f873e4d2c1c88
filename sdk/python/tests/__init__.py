"""The SDK's tests. They need a daemon: test/api/sdk-python.test.ts runs them."""
