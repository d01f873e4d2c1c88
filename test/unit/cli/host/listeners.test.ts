/** Recipients of the key: the command line never sends it to another user of the host that listens on the service's port. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listening, ownersOf } from "../../../../daemon/cli/host/listeners.ts";
import { run } from "../cli-fixture.ts";

const NOBODY = 65534;

/**
 * Listens on a free port of 127.0.0.1, prints the port, then the bytes of each connection. Written in Perl, which every Debian has for all
 * users.
 */
const LISTENER = `
use IO::Socket::INET; $| = 1;
my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 0, Listen => 5) or die $!;
print $s->sockport, "\\n";
while (my $c = $s->accept) {
  sysread $c, my $said, 65536; $said =~ s/\\r?\\n/ /g; print "$said\\n";
  print $c "HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\n{}";
  close $c;
}
`;

function listenAs(uid: number) {
  const child = spawn("/usr/bin/perl", ["-e", LISTENER], { uid, cwd: "/", stdio: ["ignore", "pipe", "inherit"] });
  const heard: string[] = [];
  const lines = createInterface({ input: child.stdout });
  const port = once(lines, "line").then(([line]) => {
    lines.on("line", (text: string) => heard.push(text));
    return Number(line);
  });
  return { port, heard, end: () => child.kill() };
}

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log("whose port it is, by real listeners: not tried, because only root can be another user");

describe.skipIf(!isRoot)("a port of this host", () => {
  let squatter: ReturnType<typeof listenAs>;
  let own: ReturnType<typeof listenAs>;
  beforeAll(() => {
    squatter = listenAs(NOBODY);
    own = listenAs(0);
  });
  afterAll(() => {
    squatter.end();
    own.end();
  });

  test.each(["127.0.0.1", "localhost"])("never receives the key if another user listens at %s", async (host) => {
    const port = await squatter.port;
    const ROOMD_URL = `http://${host}:${port}`;
    const { status, stderr } = await run(["room", "list"], { env: { ROOMD_URL, ROOMD_API_KEY: "key-secret" } });
    expect([status, stderr]).toEqual([1, expect.stringContaining(`uid ${NOBODY}`)]);
    expect(squatter.heard).toEqual([]);
  });

  test("receives the key if root listens", async () => {
    const ROOMD_URL = `http://127.0.0.1:${await own.port}`;
    await run(["room", "list"], { env: { ROOMD_URL, ROOMD_API_KEY: "key-secret" } });
    expect(own.heard.join()).toContain("Bearer key-secret");
  });
});

describe("the kernel's tables", () => {
  const TABLE = [
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000   998        0 1 1 0 100 0 0 10 0",
    "   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0",
    "   2: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0 100 0 0 10 0",
  ].join("\n");
  const TABLE_6 = [
    "   0: 00000000000000000000000000000000:1F91 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 4 1",
    "   1: 00000000000000000000000001000000:1F92 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000    34        0 5 1",
    "   2: 0000000000000000FFFF00000100007F:1F93 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000    35        0 6 1",
  ].join("\n");
  const ALL = [...listening(TABLE), ...listening(TABLE_6)];

  test.each([
    ["127.0.0.1", 8080, [998]],
    ["127.0.0.2", 8080, []],
    ["localhost", 8080, [998]],
    ["::1", 8080, []],
    ["127.0.0.1", 80, [0]],
    ["127.0.0.1", 8081, [33]],
    ["::1", 8081, [33]],
    ["127.0.0.1", 8082, []],
    ["localhost", 8082, [34]],
    ["127.0.0.1", 8083, [35]],
    ["127.0.0.1", 9999, []],
  ])("give the owners of %s:%i", (host, port, owners) => {
    expect(ownersOf(ALL, host, port)).toEqual(owners);
  });
});
