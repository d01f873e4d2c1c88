/**
 * Inner end of the only exit from an empty network namespace: listens there, forwards connections to a UNIX socket with a path, and runs
 * the program that needs it, with that program's exit status.
 */
import { connect, createServer, type Socket } from "node:net";
import { pipeSockets } from "./pipe-sockets.ts";

/** `fetch-relay PATH PORT REGISTRY PROGRAM…`; REGISTRY is HOST:PORT for direct connections without CONNECT, or "-". */
export async function runFetchRelay([
  path = "",
  port = "",
  registry = "",
  ...argv
]: readonly string[]): Promise<number> {
  await listen(Number(port), (client) => pass(client, path, ""));
  if (registry !== "-") {
    const head = `CONNECT ${registry} HTTP/1.1\r\n\r\n`;
    await listen(Number(registry.split(":").at(-1)), (client) => pass(client, path, head));
  }
  const child = Bun.spawn([...argv], { stdio: ["ignore", "inherit", "inherit"] });
  return await child.exited;
}

function listen(port: number, take: (client: Socket) => void): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, take);
  return new Promise((listening, fail) => server.once("error", fail).listen(port, "127.0.0.1", listening));
}

const ANSWERED = Buffer.from("\r\n\r\n");

/** Sends `head` first on behalf of a client that does not, and keeps the response to it from the client. */
function pass(client: Socket, path: string, head: string): void {
  const way = connect({ path, allowHalfOpen: true });
  if (head === "") {
    pipeSockets(client, way);
    return;
  }
  client.on("error", () => way.destroy());
  way.on("error", () => client.destroy());
  way.write(head);
  let answer = Buffer.alloc(0);
  const take = (piece: Buffer) => {
    answer = Buffer.concat([answer, piece]);
    const end = answer.indexOf(ANSWERED);
    if (end < 0) return;
    way.off("data", take).pause();
    if (!answer.toString("latin1").startsWith("HTTP/1.1 200 ")) {
      client.destroy();
      return way.destroy();
    }
    client.write(answer.subarray(end + ANSWERED.length));
    pipeSockets(client, way);
  };
  way.on("data", take);
  way.on("close", () => client.destroy());
}
