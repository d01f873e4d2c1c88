/**
 * Rooms on other hosts, for the SSH gateway: locating a room's host, connecting to it, and the text for a logged-in client that cannot get
 * there.
 */
import type { Connection as Client, ServerChannel } from "ssh2";
import type { Problem } from "../../../shared/api/errors.ts";
import { newId } from "../../../shared/ids.ts";
import type { Host } from "../../cluster/directory.ts";
import type { Cluster } from "../../cluster/postgres.ts";
import type { Caller } from "../../core/call/operation.ts";
import { startTimer, stopTimer } from "../../core/clock.ts";
import type { HostClient } from "../hosts/client.ts";
import { type HostSocket, openHostSocket } from "../hosts/ssh.ts";
import type { Outcome } from "../pipeline/request-context.ts";
import type { Names } from "./session-context.ts";

/** Access to other hosts. */
export interface OtherHosts {
  client: HostClient;
  elsewhere: Cluster["elsewhere"];
  /** The host that has an SSH access with this password; null: none. Rejects if that is unknown. */
  hostOfAccess(password: string): Promise<Host | null>;
  /** Address of a host's gateway; null: unknown. */
  gatewayOf(hostId: string): { host: string; port: number } | null;
}

/** A client with a valid key that opens no channel is disconnected after this. */
const ASKS_WITHIN_MS = 10_000;
const FAILED = 255;

/** Whether another host has the room, for a caller that may enter it; `ifUnknown` if that is currently unknown. Never rejects. */
export async function hasRoom(
  hosts: OtherHosts,
  { org_id, room_ids }: Caller,
  { room_id }: Names,
  ifUnknown: boolean,
): Promise<boolean> {
  if (room_ids !== null && !room_ids.includes(room_id)) return false;
  return await hosts.elsewhere(org_id, room_id).then(
    (host) => host !== null,
    () => ifUnknown,
  );
}

/** Opens a socket to the host for one session; null: the host accepts none. Rejects with host_unreachable. */
export function openTo(
  { client }: OtherHosts,
  host: Host,
  ip: string,
  signal: AbortSignal,
): Promise<HostSocket | null> {
  return openHostSocket(client, host, { ip, request_id: newId("req") }, signal);
}

/** A login at another host, as an outcome of the pipeline. */
export function forwarded(problem: Problem | null): Outcome {
  return problem === null
    ? { kind: "done", status: 200, done: { outcome: "forwarded" } as never, location: null, replayed: false }
    : { kind: "problem", status: problem.status, problem, retry_after_seconds: null, replayed: false };
}

/** Address of the room's own gateway. */
export function sentenceFor(hosts: OtherHosts, host: Host, { room_id, sandbox }: Names): string {
  const gateway = hosts.gatewayOf(host.host_id);
  const there = gateway
    ? `ssh -p ${gateway.port} -l ${sandbox}@${room_id} ${gateway.host}`
    : `see its API at ${host.url} for its address (ssh-access)`;
  return `The room is on ${host.host_id}: ${there}`;
}

/** For a key that is registered in several organizations, each with a room and an agent of these names. */
export const sentenceForSeveral = ({ room_id, sandbox }: Names): string =>
  `Several organizations have your key, and a sandbox ${sandbox} in a room ${room_id}. Name yours by its sandbox_id: sbx_…@${room_id}`;

/** Answers any request with the sentence, and ends. */
export function serveElsewhere(client: Client, sentence: string, end: () => void): void {
  const timer = startTimer(end, ASKS_WITHIN_MS);
  client.once("close", () => stopTimer(timer));
  const tell = (channel: ServerChannel | undefined) => {
    if (!channel) return;
    channel.once("close", end);
    channel.stderr.write(`roomd: ${sentence}\r\n`);
    channel.exit(FAILED);
    channel.end();
  };
  client.once("session", (acceptSession) => {
    const requests = acceptSession();
    requests.on("env", (accept) => accept?.());
    requests.on("pty", (accept) => accept?.());
    requests.once("exec", (accept) => tell(accept()));
    requests.once("shell", (accept) => tell(accept()));
    requests.once("subsystem", (accept) => tell(accept()));
  });
}
