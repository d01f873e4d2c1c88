/** The method `socket_connect`: a connection from the host to a Unix socket of the guest, carried on a stream. */
import { once } from "node:events";
import { connect as dial } from "node:net";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { MAX_SOCKET_PATH_BYTES, StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { InvalidRequest } from "../exec/request.ts";
import { userFor } from "../exec/user.ts";
import * as libc from "../libc.ts";
import { carry } from "./connect.ts";

const DIAL_MS = 10_000;

/** Ends the stream once both directions have ended. Throws InvalidRequest. The rights of `user` apply. */
export async function connectToSocket(stream: Stream, request: object, user = userFor(null)): Promise<void> {
  const { path } = request as { path?: unknown };
  const isPath = typeof path === "string" && path.startsWith("/") && !path.includes("\0");
  if (!isPath || Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES)
    throw new InvalidRequest("path must be an absolute path");
  if (!user) throw new InvalidRequest("the image's user is not there");
  let fd: number | null = null;
  try {
    fd = libc.openPathAs(path, user);
    // Connects by the descriptor: since the check, the path may have been changed to another socket.
    const socket = dial({ path: `/proc/self/fd/${fd}`, allowHalfOpen: true });
    socket.on("error", () => {});
    await once(socket, "connect", { signal: AbortSignal.timeout(DIAL_MS) }).catch((error: unknown) => {
      socket.destroy();
      throw error;
    });
    libc.close(fd);
    fd = null;
    await carry(stream, socket);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    stream.fail(StreamErrorCode.port_not_listening, why);
  } finally {
    if (fd !== null) libc.close(fd);
  }
}
