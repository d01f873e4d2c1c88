/**
 * `roomd hibernate --all` without guests: the service receives the request, exits, reports to systemd that it takes longer, and starts
 * normally again.
 */
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";

/** Datagrams at a socket of systemd's kind, a line each. */
const RECEIVER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("\\0" + sys.argv[1][1:])
print("bound", flush=True)
while True: print(s.recv(4096).decode(), flush=True)
`;

test("hibernate-all ends the running service, and refuses if none runs", async () => {
  const address = `@roomd-hibernate-${process.pid}`;
  const receiver = spawn("python3", ["-c", RECEIVER, address], { stdio: ["ignore", "pipe", "inherit"] });
  const messages: string[] = [];
  createInterface({ input: receiver.stdout }).on("line", (line) => messages.push(line));
  try {
    await until("the receiver listens", () => messages.length > 0);
    await using daemon = await TestDaemon.start({ env: { NOTIFY_SOCKET: address } });
    const flag = join(daemon.runtimeDir, "hibernate-all");

    const plain = await daemon.cli(["hibernate"]);
    expect([plain.status, plain.stderr]).toEqual([2, expect.stringContaining("--all")]);
    expect(daemon.runs).toBe(true);

    const done = await daemon.cli(["hibernate", "--all", "--json"]);
    expect([done.status, JSON.parse(done.stdout)]).toEqual([0, { hibernated: 0, left_out: [] }]);
    await until("the daemon has exited", () => daemon.exitCode === 0);
    expect(existsSync(flag)).toBe(false);
    await until("the stop timeout is extended", () => messages.some((line) => line.startsWith("EXTEND_TIMEOUT_USEC=")));
    expect(messages.indexOf("STOPPING=1")).toBeLessThan(messages.findIndex((line) => line.startsWith("EXTEND")));

    const again = await daemon.cli(["hibernate", "--all"]);
    expect([again.status, again.stderr]).toEqual([1, expect.stringContaining(daemon.runtimeDir)]);
    expect(existsSync(flag)).toBe(false);

    // A flag that a killed daemon has not read is ignored by the next one.
    writeFileSync(flag, "");
    await daemon.serve();
    expect(existsSync(flag)).toBe(false);
    const { body: health } = await daemon.api("GET", "/health");
    expect(health.checks).toContainEqual(expect.objectContaining({ id: "host_restart", status: "ok" }));
    // An end as any other.
    messages.length = 0;
    expect(await daemon.end("SIGTERM")).toBe(0);
    await until("the service is stopping", () => messages.includes("STOPPING=1"));
    expect(messages.filter((line) => line.startsWith("EXTEND"))).toEqual([]);
  } finally {
    receiver.kill("SIGKILL");
  }
});
