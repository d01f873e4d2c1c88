/** The method `connect`: a connection from the host to a port of the guest's loopback, carried on a stream. */
import { once } from "node:events";
import { connect as dial, type Socket } from "node:net";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { Channel, type ConnectOpened, StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { drained } from "../drained.ts";
import { INTERCEPT_PORT } from "../egress/places.ts";
import { InvalidRequest } from "../exec/request.ts";
import { GATEWAY_PORT } from "../gateway/place.ts";

/** Both families, for servers that listen on one only. */
const LOOPBACKS = ["127.0.0.1", "::1"] as const;
const DIAL_MS = 10_000;
/** The agent's own ports: they serve only the guest's programs, whose requests count as this agent's. */
export const AGENT_PORTS: readonly number[] = [GATEWAY_PORT, INTERCEPT_PORT];

/** Ends the stream once both directions have ended. Throws InvalidRequest. */
export async function connect(stream: Stream, request: object): Promise<void> {
  const { port } = request as { port?: unknown };
  if (typeof port !== "number" || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new InvalidRequest("port must be 1 to 65535");
  }
  const socket = AGENT_PORTS.includes(port) ? null : await firstThatListens(port);
  if (!socket) return stream.fail(StreamErrorCode.port_not_listening, `nothing listens on port ${port}`);
  socket.setNoDelay(true);
  await carry(stream, socket);
}

/** Sends `connected`, then copies bytes in both directions until both have ended, and ends the stream. */
export async function carry(stream: Stream, socket: Socket): Promise<void> {
  const end = () => socket.destroy();
  stream.finished.then(end, end);
  const opened: ConnectOpened = { type: "connected" };
  stream.say(opened);
  try {
    await Promise.all([takeIn(stream, socket), giveOut(stream, socket)]);
    stream.finish(null);
  } catch (error) {
    stream.fail(StreamErrorCode.internal, error instanceof Error ? error.message : String(error));
  } finally {
    end();
  }
}

async function firstThatListens(port: number): Promise<Socket | null> {
  for (const host of LOOPBACKS) {
    const socket = dial({ host, port, allowHalfOpen: true });
    try {
      await once(socket, "connect", { signal: AbortSignal.timeout(DIAL_MS) });
      return socket;
    } catch {
      socket.destroy();
    }
  }
  return null;
}

/** From the host to the guest's server, with backpressure. */
async function takeIn(stream: Stream, socket: Socket): Promise<void> {
  for await (const bytes of stream.read(Channel.stdin)) {
    if (socket.destroyed) return;
    if (!socket.write(bytes)) await drained(socket);
  }
  if (!stream.ended) socket.end();
}

/** Copies bytes from the socket to the host, as fast as the host reads. */
async function giveOut(stream: Stream, socket: Socket): Promise<void> {
  for await (const bytes of socket) {
    if (!(await stream.write(Channel.stdout, bytes as Uint8Array))) return;
  }
  stream.endChannel(Channel.stdout);
}
