/**
 * Scenarios of the official conformance suite that need no tools of their own, for the protocol version that it supports. Its client sends
 * no key, so a relay of the test adds one.
 */
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";
import { shortOrLong } from "../../harness/guests.ts";
import { bearer } from "../calls.ts";

const SCENARIOS = [
  "server-initialize",
  "tools-list",
  "dns-rebinding-protection",
  "ping",
  "server-sse-multiple-streams",
];
/** Each scenario is a separate process. */
const many = shortOrLong("scenarios of the MCP conformance suite", 3, SCENARIOS.length);

describe("the conformance suite", () => {
  let daemon: TestDaemon;
  let relay: ReturnType<typeof Bun.serve>;
  beforeAll(async () => {
    daemon = await TestDaemon.start();
    relay = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 60,
      fetch: async ({ url, method, headers, body }) => {
        const passed = Object.entries({ ...Object.fromEntries(headers), ...bearer(daemon.apiKey) });
        const kept = passed.filter(([name]) => !["connection", "content-length", "accept-encoding"].includes(name));
        return await fetch(daemon.url + new URL(url).pathname, { method, headers: Object.fromEntries(kept), body });
      },
    });
  });
  afterAll(async () => {
    await relay.stop(true);
    await daemon.stop();
  });

  test.each(SCENARIOS.slice(0, many))("passes %s", { timeout: 60_000 }, async (scenario) => {
    const url = `http://localhost:${relay.port}/mcp`;
    const suite = resolve("node_modules/.bin/conformance");
    const child = spawn(process.execPath, ["--bun", suite, "server", "--url", url, "--scenario", scenario]);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    const status = await new Promise((done) => child.once("close", done));
    expect({ status, told: output }).toMatchObject({
      status: 0,
      told: expect.stringMatching(/Passed: ([1-9]\d*)\/\1, 0 failed/),
    });
  });
});
