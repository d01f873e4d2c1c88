/**
 * The method `screen_connect`: a connection from the host to the guest's screen, carried on a stream. It connects to that one socket only.
 */
import { once } from "node:events";
import { connect as dial } from "node:net";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { SCREEN_SOCKET, StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { carry } from "../ports/connect.ts";

const DIAL_MS = 10_000;

/** Ends the stream once both directions have ended. */
export async function connectToScreen(stream: Stream, path: string = SCREEN_SOCKET): Promise<void> {
  const socket = dial({ path, allowHalfOpen: true });
  try {
    await once(socket, "connect", { signal: AbortSignal.timeout(DIAL_MS) });
  } catch {
    socket.destroy();
    return stream.fail(StreamErrorCode.no_screen, "nothing listens on the screen's socket");
  }
  await carry(stream, socket);
}
