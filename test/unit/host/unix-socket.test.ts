/** Connecting to a socket in a directory that may be owned by a process that a guest has compromised. */
import { chownSync, linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { connectWhenThere, NotOwnSocket } from "../../../daemon/host/unix-socket.ts";

const OWNER = 65_534;
const never = new Promise<never>(() => {});
let home: string;
let own: string;
let others: string;
const servers: Server[] = [];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roomd-socket-"));
  [own, others] = [join(home, "own"), join(home, "others")];
  for (const directory of [own, others]) mkdirSync(directory);
});
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  rmSync(home, { recursive: true });
});

async function listen(path: string): Promise<string> {
  const server = createServer((socket) => socket.end("hello"));
  servers.push(server);
  await new Promise<void>((listening) => server.listen(path, listening));
  return path;
}

function said(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const handlers = { data: (_: unknown, bytes: Buffer) => resolve(String(bytes)), error: reject };
    connectWhenThere(path, 2_000, never, handlers as never).catch(reject);
  });
}

test("a socket of the directory's owner is connected to, as soon as it exists", async () => {
  const path = join(own, "a.sock");
  const received = said(path);
  await listen(path);
  expect(await received).toBe("hello");
});

test("a link, a file, and another user's socket are rejected", async () => {
  const other = await listen(join(others, "b.sock"));
  symlinkSync(other, join(own, "link.sock"));
  writeFileSync(join(own, "file.sock"), "");
  for (const name of ["link.sock", "file.sock"]) await expect(said(join(own, name))).rejects.toThrow(NotOwnSocket);
  if (process.getuid?.() !== 0) return console.log("another user's socket: left out, because it needs root");
  linkSync(other, join(own, "hard.sock"));
  chownSync(own, OWNER, OWNER);
  await expect(said(join(own, "hard.sock"))).rejects.toThrow(NotOwnSocket);
});
