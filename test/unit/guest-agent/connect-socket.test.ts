/** Connections to Unix sockets of the guest, with the rights of a user. */
import { chmodSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { User } from "../../../guest-agent/exec/user.ts";
import { connectToSocket } from "../../../guest-agent/ports/connect-socket.ts";
import { Channel } from "../../../shared/agent-protocol/messages.ts";
import { joined } from "../../protocol/wire.ts";

const ROOT: User = { name: "root", uid: 0, gid: 0, home: "/root", shell: "/bin/sh" };
const OTHER: User = { name: "other", uid: 65_533, gid: 65_533, home: "/", shell: "/bin/sh" };
const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log("skipped: only root can be another user");
const home = mkdtempSync(join(tmpdir(), "roomd-socket-"));
const path = join(home, "echo");
let server: Server;

beforeAll(async () => {
  chmodSync(home, 0o755);
  server = createServer((socket) => socket.pipe(socket));
  await new Promise<void>((done) => server.listen(path, done));
  symlinkSync(path, join(home, "link"));
});
afterAll(() => {
  server.close();
  rmSync(home, { recursive: true, force: true });
});

/** The echo of `ping`; rejects with the reason of a refusal. */
async function echoed(user: User, message: unknown): Promise<string> {
  const { host } = joined({
    guest: {
      onOpen: (stream, request) => {
        connectToSocket(stream, request as object, user).catch((error: Error) =>
          stream.fail("invalid_request", error.message),
        );
      },
    },
  });
  const stream = host.link.open({ method: "socket_connect", path: message } as never);
  await stream.write(Channel.stdin, Buffer.from("ping"));
  stream.endChannel(Channel.stdin);
  const back: Uint8Array[] = [];
  for await (const bytes of stream.read(Channel.stdout)) back.push(bytes);
  await stream.finished;
  return Buffer.concat(back).toString();
}

test.skipIf(!isRoot)("a socket that the user may write to is connected, through a link too", async () => {
  chmodSync(path, 0o600);
  expect(await echoed(ROOT, path)).toBe("ping");
  expect(await echoed(ROOT, join(home, "link"))).toBe("ping");
  chmodSync(path, 0o666);
  expect(await echoed(OTHER, path)).toBe("ping");
});

test.skipIf(!isRoot)("another user's socket, or one in another user's directory, is refused", async () => {
  chmodSync(path, 0o600);
  await expect(echoed(OTHER, path)).rejects.toThrow(/Permission denied/);
  chmodSync(path, 0o666);
  chmodSync(home, 0o700);
  await expect(echoed(OTHER, path)).rejects.toThrow(/Permission denied/);
  chmodSync(home, 0o755);
  // Its rights are the agent's own again.
  chmodSync(path, 0o600);
  expect(await echoed(ROOT, path)).toBe("ping");
});

test("a path without a socket, or an invalid path, is rejected", async () => {
  for (const each of ["/nothing/there", "/etc/hostname"]) await expect(echoed(ROOT, each)).rejects.toThrow();
  for (const each of ["relative", 7, "/a\0b", `/${"a".repeat(4096)}`])
    await expect(echoed(ROOT, each)).rejects.toThrow("absolute path");
});
