/** The service's notifications to systemd: ready, watchdog of the event loop, stopping. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";

/** Datagrams at a socket of systemd's kind, a line each. */
const RECEIVER = `
import socket, sys
at = sys.argv[1]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("\\0" + at[1:] if at[0] == "@" else at)
print("bound", flush=True)
while True: print(s.recv(4096).decode(), flush=True)
`;
const WATCHDOG_MS = 600;

const home = mkdtempSync(join(tmpdir(), "roomd-notify-"));
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(home, { recursive: true, force: true });
});

async function receive(address: string): Promise<string[]> {
  const child = spawn("python3", ["-c", RECEIVER, address], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const messages: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => messages.push(line));
  await until("the receiver listens", () => messages.length > 0);
  return messages;
}

test.each([
  ["a socket with a path", join(home, "notify")],
  ["an abstract socket", `@roomd-test-${process.pid}`],
])("readiness, watchdog and stopping are sent to %s", async (_what, address) => {
  const messages = await receive(address);
  const env = { NOTIFY_SOCKET: address, WATCHDOG_USEC: String(WATCHDOG_MS * 1000) };
  await using daemon = await TestDaemon.start({ env });
  await until("the service is ready", () => messages.includes("READY=1"));
  expect(messages.slice(0, 2)).toEqual(["bound", "READY=1"]);
  const beats = () => messages.filter((line) => line === "WATCHDOG=1").length;
  await until("the watchdog is fed", () => beats() >= 3);
  // A stopped event loop sends nothing.
  process.kill(daemon.pid, "SIGSTOP");
  const before = await until("the pending notifications have arrived", async () => {
    const now = beats();
    await Bun.sleep(WATCHDOG_MS);
    return beats() === now && now;
  });
  process.kill(daemon.pid, "SIGCONT");
  await until("the watchdog is fed again", () => beats() > before);
  await daemon.end("SIGTERM");
  await until("the service is stopping", () => messages.includes("STOPPING=1"));
  expect(messages.at(-1)).toBe("STOPPING=1");
});

test("a database copy of an interrupted upgrade is removed once the service is ready", async () => {
  await using daemon = await TestDaemon.start();
  const kept = join(daemon.dataDir, "before-upgrade");
  await daemon.end("SIGKILL");
  mkdirSync(kept);
  writeFileSync(join(kept, "roomd.db"), "older");
  await daemon.serve();
  expect(existsSync(kept)).toBe(false);
});

test("a start with a database migration extends the startup timeout", async () => {
  const address = join(home, "migrating");
  mkdirSync(home, { recursive: true });
  const messages = await receive(address);
  await using daemon = await TestDaemon.start({ env: { NOTIFY_SOCKET: address } });
  await daemon.end("SIGKILL");
  await until("the service is ready", () => messages.includes("READY=1"));
  expect(messages).toEqual(["bound", "READY=1"]);
  for (const end of ["", "-wal", "-shm"]) rmSync(join(daemon.dataDir, `roomd.db${end}`), { force: true });
  await daemon.serve();
  await until("the service is ready again", () => messages.filter((line) => line === "READY=1").length === 2);
  expect(messages.slice(2)).toEqual([expect.stringMatching(/^EXTEND_TIMEOUT_USEC=\d{8,}$/), "READY=1"]);
});
