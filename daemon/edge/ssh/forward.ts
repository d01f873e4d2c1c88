/**
 * Connections that a client forwards (`ssh -L`, `-D`) to the guest's loopback or a Unix socket in the guest; for any other host they are
 * refused with the reason.
 */
import type { ServerChannel } from "ssh2";
import { ownerOf } from "../../core/loop/index.ts";
import type { GuestPort } from "../../host/guest-link/connect.ts";
import { ChannelWriter } from "./channel-writer.ts";
import type { OpenConnection } from "./open-connection.ts";
import { drain, feed } from "./pump.ts";

const MAX_REASON_CHARACTERS = 300;

export type Where = { host: string; port: number } | { path: string };

/** `refuse` is called with a reason that the client shows. */
export async function serveForward(
  destination: Where,
  connection: OpenConnection,
  accept: () => ServerChannel,
  refuse: (reason: string) => void,
): Promise<void> {
  const taken: GuestPort[] = [];
  const refused = await connection.opening.forward({ ...destination }, (opened) => void taken.push(opened));
  const [opened] = taken;
  // A connection that could not be recorded is refused although it is open; a channel of a client that is gone would never close.
  if (opened && refused === null && !connection.isOver) return await follow(accept(), opened, connection);
  opened?.close();
  refuse(lineOf(refused ?? "The session has ended."));
}

/** One line from a sentence that may contain a name chosen by the client. */
function lineOf(reason: string): string {
  return reason.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, MAX_REASON_CHARACTERS);
}

async function follow(channel: ServerChannel, port: GuestPort, connection: OpenConnection): Promise<void> {
  const writer = new ChannelWriter(channel, connection.line, ownerOf(connection.orgId));
  connection.watch(channel, () => {
    writer.close();
    port.close();
  });
  feed(channel, port, connection.countIn);
  // A broken one is reported by its end.
  await drain(port.output, (bytes) => writer.out(bytes), connection.countOut).catch(() => {});
  // ssh2 closes a channel when its output ends: the guest's half has ended, the client's may continue.
  (channel as ServerChannel & { eof(): void }).eof();
  await port.ended.catch(() => {});
  channel.end();
}
