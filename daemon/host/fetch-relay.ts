/**
 * Owns the end of the way out of a network in which there is nothing: it listens there, hands on what comes to a socket with a path, and runs the program
 * that needs it, with whose status it ends.
 */
import { connect, createServer, type Socket } from "node:net";
import { joinSockets } from "./joined-sockets.ts";

/** `fetch-relay PATH PORT REGISTRY PROGRAM…`; REGISTRY is HOST:PORT that is asked for directly, or "-". */
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

/** `head` is said first where the client does not say it, and its answer is kept from it. */
function pass(client: Socket, path: string, head: string): void {
  const way = connect({ path, allowHalfOpen: true });
  if (head === "") {
    joinSockets(client, way);
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
    joinSockets(client, way);
  };
  way.on("data", take);
  way.on("close", () => client.destroy());
}
