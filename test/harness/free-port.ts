/** Ports that a test must know before it starts the program that listens on them. */
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

const LOWEST = 10_240;
const MAX_TRIES = 100;

/**
 * A free port of the loopback, below the range from which the kernel takes the ports of outgoing connections: a connection of a test that
 * runs in parallel cannot take it before the program listens, nor while the program restarts. Throws if none is found.
 */
export async function freePort(): Promise<number> {
  const [first = 0] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").trim().split(/\s+/).map(Number);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = first > LOWEST ? LOWEST + Math.floor(Math.random() * (first - LOWEST)) : 0;
    const taken = await listenOnce(port);
    if (taken !== null) return taken;
  }
  throw new Error(`no port of the loopback was free in ${MAX_TRIES} tries`);
}

/** Listens for a moment and returns the port; null if another program has it. */
async function listenOnce(port: number): Promise<number | null> {
  const server = createServer();
  const listens = await new Promise<boolean>((done) => {
    server.once("error", () => done(false));
    server.listen(port, "127.0.0.1", () => done(true));
  });
  if (!listens) return null;
  const { port: taken } = server.address() as { port: number };
  await new Promise((closed) => server.close(closed));
  return taken;
}
