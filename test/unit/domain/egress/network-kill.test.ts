/** Destinations of a sandbox's real connections, readable immediately, and their rows after the daemon is killed. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { openConnection } from "../../../../daemon/db/client.ts";
import { Networks } from "../../../../daemon/domain/egress/networks.ts";
import type { SandboxNetwork } from "../../../../shared/api/egress.ts";
import type { SandboxId } from "../../../../shared/ids.ts";

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log("connections of a sandbox: left out, because only root makes a network namespace");
const directory = mkdtempSync(join(tmpdir(), "roomd-network-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const ADDRESS = "192.52.193.9";
const RUNNER = fileURLToPath(new URL("network-runner.ts", import.meta.url));
const SCRIPT = `ip link set lo up && ip address add ${ADDRESS}/32 dev lo && exec "$@"`;

const FIRST = [
  {
    ...{ host: "echo.example", ip: ADDRESS, port: 7000, allowed: true, reason: null },
    ...{ connections: 2, sent_bytes: 10, received_bytes: 10 },
  },
  { host: "evil.example", ip: null, port: 443, allowed: false, reason: "not_listed", connections: 1, sent_bytes: 0 },
  {
    host: null,
    ip: ADDRESS,
    port: 7000,
    allowed: true,
    reason: null,
    connections: 1,
    sent_bytes: 2,
    received_bytes: 2,
  },
];

/** Those of one millisecond have no order. */
const byHost = (items: SandboxNetwork["items"] = []) =>
  items.toSorted((a, b) => String(a.host).localeCompare(String(b.host)));

test.skipIf(!isRoot)(
  "is the same before and after it is written, and kill -9 loses only unwritten data",
  async () => {
    const [database, hosts] = [join(directory, "roomd.db"), join(directory, "hosts")];
    writeFileSync(hosts, `${ADDRESS} echo.example\n`);
    const argv = ["unshare", "--net", "sh", "-c", SCRIPT, "sh", process.execPath, RUNNER, database, hosts, ADDRESS];
    const child = Bun.spawn(argv, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    const lines: SandboxNetwork[] = [];
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of child.stdout) {
      text += decoder.decode(chunk, { stream: true });
      lines.push(
        ...text
          .split("\n")
          .slice(0, -1)
          .map((line) => JSON.parse(line)),
      );
      text = text.slice(text.lastIndexOf("\n") + 1);
      if (lines.length >= 2) child.kill("SIGKILL");
    }
    await child.exited;
    const [first, second] = lines;
    expect(first).toMatchObject({ since: "2026-01-31T12:00:00.000Z", other: { allowed: 0, refused: 0 } });
    expect(byHost(first?.items)).toMatchObject(FIRST);
    expect(second?.items[0]?.host).toBe("late.example");
    expect(second?.items).toHaveLength(FIRST.length + 1);

    const connection = openConnection(database);
    const left = new Networks(connection.queries).shown("sbx_1" as SandboxId, "");
    connection.close();
    expect({ ...left, items: byHost(left.items) }).toEqual({ ...first, items: byHost(first?.items) });
  },
  30_000,
);
