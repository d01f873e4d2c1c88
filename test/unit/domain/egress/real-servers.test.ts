/** Clients and servers of other protocols on a connection that is allowed by name, through the inspection as a sandbox's go. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { carry } from "../../../../daemon/domain/egress/connection.ts";
import { Inspector } from "../../../../daemon/domain/egress/inspector.ts";
import { Allowance } from "../../../../daemon/host/guest-link/pace.ts";
import { Channel } from "../../../../shared/agent-protocol/messages.ts";
import { freePort } from "../../../harness/free-port.ts";
import { joined } from "../../../protocol/wire.ts";

const NAME = "db.example.org";
const directory = mkdtempSync(join(tmpdir(), "roomd-protocols-"));
const ends: (() => void)[] = [];
afterAll(() => {
  for (const end of ends) end();
  rmSync(directory, { recursive: true, force: true });
});

/** A port that forwards connections to `port` as a sandbox's go to a name, and the reason of the last refusal. */
async function relay(port: number) {
  const refusals: string[] = [];
  const free = () => new Allowance(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  const flow = { out: free(), in: free(), looks: free(), firstMessageMs: 10_000, sent: () => {}, received: () => {} };
  const { guest } = joined({
    host: {
      onOpen: (stream) => {
        const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true }, () => {
          carry(stream, socket, new Inspector(NAME), flow).catch((error: Error) => {
            refusals.push(error.message);
            socket.destroy();
            stream.fail("egress_denied", error.message);
          });
        });
      },
    },
  });
  const serve = async (client: Socket) => {
    const stream = guest.link.open({ method: "egress_connect" });
    client.on("data", (bytes: Buffer) => void stream.write(Channel.stdin, bytes));
    client.on("end", () => stream.endChannel(Channel.stdin)).on("error", () => {});
    try {
      for await (const bytes of stream.read(Channel.stdout)) client.write(bytes);
      await stream.finished;
      client.end();
    } catch {
      client.destroy();
    }
  };
  const server = createServer({ allowHalfOpen: true }, (client) => void serve(client));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  ends.push(() => server.close());
  return { port: (server.address() as AddressInfo).port, refusals };
}

/** The port of a started server program, or null if the program is not installed. */
async function started(program: string, argv: (port: number) => string[]): Promise<number | null> {
  if (!Bun.which(program)) {
    console.log(`skipped: there is no ${program}`);
    return null;
  }
  const port = await freePort();
  const child = spawn(program, argv(port), { stdio: "ignore", cwd: directory });
  ends.push(() => child.kill("SIGKILL"));
  await expect.poll(() => answers(port), { timeout: 10_000 }).toBe(true);
  return port;
}

const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(Boolean(socket.end())));
    socket.on("error", () => resolve(false));
  });

/** The response to this text, up to the end, or to a match of `until`. */
function say(port: number, text: string, until: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let got = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    socket.setTimeout(5000, () => socket.destroy(new Error(`silence after ${JSON.stringify(got)}`)));
    socket.on("data", (bytes) => {
      got += bytes.toString("latin1");
      if (until.test(got)) socket.end(() => resolve(got));
    });
    socket.on("error", (error: NodeJS.ErrnoException) => (error.code === "ECONNRESET" ? resolve(got) : reject(error)));
    socket.on("close", () => resolve(got));
  });
}

test("git clones by git://", async () => {
  const git = (...argv: string[]) => spawnSync("git", argv, { cwd: directory, encoding: "utf8" });
  expect(git("init", "--quiet", "p.git").status).toBe(0);
  const as = ["-C", "p.git", "-c", "user.name=a", "-c", "user.email=a@b.c"];
  expect(git(...as, "commit", "--quiet", "--allow-empty", "-m", "first").status).toBe(0);
  const argv = (port: number) => [
    "daemon",
    "--export-all",
    "--listen=127.0.0.1",
    `--port=${port}`,
    "--base-path=.",
    ".",
  ];
  const port = await started("git", argv);
  if (port === null) return;
  const { port: by, refusals } = await relay(port);
  const cloned = spawn("git", ["clone", "--quiet", `git://127.0.0.1:${by}/p.git`, "copy"], { cwd: directory });
  const status = await new Promise((done) => cloned.once("close", done));
  expect([status, refusals]).toEqual([0, []]);
  expect(git("-C", "copy", "log", "--format=%s").stdout).toBe("first\n");
});

test("NATS' CONNECT is refused with the reason, and its PING passes", async () => {
  const port = await started("nats-server", (at) => ["--addr", "127.0.0.1", "--port", String(at)]);
  if (port === null) return;
  const { port: by, refusals } = await relay(port);
  expect(await say(by, 'CONNECT {"verbose":false}\r\nPING\r\n', /PONG/)).not.toContain("PONG");
  expect(refusals).toEqual([expect.stringContaining("HTTP/1")]);
  expect(await say(by, "PING\r\n", /PONG/)).toContain("PONG");
});

describe("memcached", async () => {
  const port = await started("memcached", (at) => ["-l", "127.0.0.1", "-p", String(at), "-U", "0", "-u", "nobody"]);
  test.skipIf(port === null)("takes a value, and get is refused with the reason", async () => {
    const { port: by, refusals } = await relay(port ?? 0);
    expect(await say(by, "set key 0 60 5\r\nhello\r\nget key\r\n", /END/)).toBe(
      "STORED\r\nVALUE key 0 5\r\nhello\r\nEND\r\n",
    );
    expect(await say(by, "get key\r\n", /END/)).toBe("");
    expect(refusals).toEqual([expect.stringContaining("HTTP/1")]);
  });
});

describe("Redis", async () => {
  const port = await started("redis-server", (at) => ["--bind", "127.0.0.1", "--port", String(at), "--save", ""]);
  test.skipIf(port === null)("answers, and an inline GET is refused with the reason", async () => {
    const { port: by, refusals } = await relay(port ?? 0);
    expect(await say(by, "*1\r\n$4\r\nPING\r\n", /PONG/)).toBe("+PONG\r\n");
    expect(await say(by, "GET key\r\n", /\r\n/)).toBe("");
    expect(refusals).toHaveLength(1);
  });
});
