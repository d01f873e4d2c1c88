/** Look-ups of names, with a DNS server in a separate network namespace. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { HostResolver, NotResolved } from "../../../../daemon/domain/egress/resolver.ts";

const directory = mkdtempSync(join(tmpdir(), "roomd-resolver-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const ASKER = { org_id: "org", sandbox_id: "sandbox" };
const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log("names by DNS: left out, because network namespaces need root");

function fileOf(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

/** Output of a runner that has a private DNS server. */
function besideNameServer(runner: URL, ...args: string[]): unknown {
  const resolv = fileOf("resolv.conf", "nameserver 127.0.0.1\nsearch corp.internal\noptions timeout:1 attempts:1\n");
  const hosts = fileOf("etc-hosts", "127.0.0.1 localhost\n192.52.193.7 Host.example\n");
  const script = [
    "ip link set lo up && mount --bind $1 /etc/resolv.conf && mount --bind $2 /etc/hosts && shift 2",
    'exec "$@"',
  ].join(" && ");
  const program = [process.execPath, fileURLToPath(runner), ...args];
  const argv = ["--net", "--mount", "sh", "-c", script, "sh", resolv, hosts, ...program];
  const { stdout, stderr } = spawnSync("unshare", argv, { encoding: "utf8" });
  expect(stdout, stderr).not.toBe("");
  return JSON.parse(stdout);
}

test.skipIf(!isRoot)("a name is queried unchanged and once, and an empty answer differs from no answer", () => {
  const own = fileOf("own", "192.52.193.8 own.example\n");
  const names =
    "a.example a.example none.example empty.example fails.example refused.example short host.example own.example";
  const address = ["192.52.193.9"];
  const runner = new URL("resolver-runner.ts", import.meta.url);
  expect(besideNameServer(runner, "host", own, ...names.split(" "))).toEqual([
    { name: "a.example", addresses: address, asked: ["a.example"] },
    { name: "a.example", addresses: address, asked: [] },
    { name: "none.example", addresses: [], asked: ["none.example"] },
    { name: "empty.example", addresses: [], asked: ["empty.example"] },
    { name: "fails.example", failed: true, asked: ["fails.example"] },
    { name: "refused.example", failed: true, asked: ["refused.example"] },
    // Of one label it is the host's short name for something, as everywhere on the host.
    { name: "short", addresses: address, asked: ["short.corp.internal"] },
    { name: "host.example", addresses: ["192.52.193.7"], asked: [] },
    { name: "own.example", addresses: ["192.52.193.8"], asked: [] },
  ]);
  expect(besideNameServer(runner, "guest", own, "short", "host.example", "localhost", "own.example")).toEqual([
    { name: "short", addresses: address, asked: ["short"] },
    { name: "host.example", addresses: address, asked: ["host.example"] },
    { name: "localhost", addresses: address, asked: ["localhost"] },
    { name: "own.example", addresses: ["192.52.193.8"], asked: [] },
  ]);
});

test.skipIf(!isRoot)("other records are queried by their type", () => {
  const names = "SRV:_x._tcp.b.example MX:b.example TXT:b.example TXT:empty.example TXT:none.example TXT:fails.example";
  expect(besideNameServer(new URL("resolver-runner.ts", import.meta.url), "guest", "", ...names.split(" "))).toEqual([
    {
      name: "SRV:_x._tcp.b.example",
      found: [{ type: "SRV", priority: 1, weight: 2, port: 27_017, target: "a.example" }],
    },
    { name: "MX:b.example", found: [{ type: "MX", preference: 10, target: "a.example" }] },
    { name: "TXT:b.example", found: [{ type: "TXT", texts: ["x".repeat(255), "second"] }] },
    { name: "TXT:empty.example", found: [] },
    { name: "TXT:none.example", found: [] },
    { name: "TXT:fails.example", found: "failed" },
  ]);
});

interface Timed {
  failed: boolean;
  ms: number;
}

test.skipIf(!isRoot)("names without an answer delay only their own organization", { timeout: 60_000 }, () => {
  const result = besideNameServer(new URL("resolver-flood-runner.ts", import.meta.url)) as {
    quiet: Timed;
    beside: Timed[];
    read: Timed;
    silent: number;
    failed: number;
    again: Timed;
  };
  expect(result.beside.filter(({ failed }) => failed)).toEqual([]);
  expect(Math.max(...result.beside.map(({ ms }) => ms))).toBeLessThan(result.quiet.ms + 250);
  expect(result.read.ms).toBeLessThan(result.quiet.ms + 250);
  // Look-ups that wait for a slot of their organization are not sent yet.
  expect(result.silent).toBeLessThanOrEqual(16);
  expect(result.failed).toBe(100);
  // It was never answered a moment ago.
  expect(result.again).toMatchObject({ failed: true });
  expect(result.again.ms).toBeLessThan(250);
});

describe("the operator's hosts file", () => {
  test("is read like /etc/hosts, and again after a change", async () => {
    const path = fileOf(
      "hosts",
      "# none\n1.2.3.4 A.example b.example. # c.example\n::1 a.example\nnonsense d.example\n 5.6.7.8\tb.example\n",
    );
    const resolver = new HostResolver(path, "guest");
    const texts = async (name: string) => (await resolver.resolve(name, ASKER)).map(({ text }) => text);
    expect(await texts("a.example")).toEqual(["1.2.3.4", "::1"]);
    expect(await texts("b.example")).toEqual(["1.2.3.4", "5.6.7.8"]);
    writeFileSync(path, "9.9.9.9 a.example\n");
    expect(await texts("a.example")).toEqual(["9.9.9.9"]);
  });

  test("that is missing resolves no name, and no other source is used", async () => {
    await expect(new HostResolver(join(directory, "gone"), "host").resolve("localhost", ASKER)).rejects.toThrow(
      NotResolved,
    );
  });
});
