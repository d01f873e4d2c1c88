/** Owns ports that a test must know before a program is started that listens at them. */
import { createServer } from "node:net";

/** Of the loopback: nobody listened there a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as { port: number };
  await new Promise((closed) => server.close(closed));
  return port;
}
