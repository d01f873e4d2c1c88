/**
 * Owns rooms of other hosts, as the gateway sees them: which host has one, the way there, and what somebody is told who has logged in
 * and cannot be let in.
 */
import type { Connection as Client, ServerChannel } from "ssh2";
import type { Problem } from "../../../shared/api/errors.ts";
import { newId } from "../../../shared/ids.ts";
import type { Directory, Host } from "../../cluster/directory.ts";
import { startTimer, stopTimer } from "../../core/clock.ts";
import type { Caller } from "../../core/operation.ts";
import type { HostClient } from "../hosts/client.ts";
import { type HostSocket, openHostSocket } from "../hosts/ssh.ts";
import type { Outcome } from "../walk.ts";
import type { Names } from "./visit.ts";

/** What is known of other hosts. */
export interface OtherHosts {
  client: HostClient;
  elsewhere: Directory["elsewhere"];
  /** Which has an SSH access with this password; null: none. Rejects where that is not known. */
  hostOfAccess(password: string): Promise<Host | null>;
  /** Where their gateways are reached; null: that is not known. */
  gatewayOf(hostId: string): { host: string; port: number } | null;
}

/** Who has a good key and asks for nothing is cut off after this. */
const ASKS_WITHIN_MS = 10_000;
const FAILED = 255;

/** Whether another host has the room, for a caller that may enter it; `ifUnknown` where that is not known just now. Never rejects. */
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

/** A way to the host for one session; null: it takes none. Rejects with host_unreachable. */
export function openTo({ client }: OtherHosts, host: Host, ip: string, gone: AbortSignal): Promise<HostSocket | null> {
  return openHostSocket(client, host, { ip, request_id: newId("req") }, gone);
}

/** What the road is told of a login at another host. */
export function forwarded(problem: Problem | null): Outcome {
  return problem === null
    ? { kind: "done", status: 200, done: { outcome: "forwarded" } as never, location: null, replayed: false }
    : { kind: "problem", status: problem.status, problem, retry_after_seconds: null, replayed: false };
}

/** Where the room's own gateway is. */
export function sentenceFor(hosts: OtherHosts, host: Host, { room_id, sandbox }: Names): string {
  const gateway = hosts.gatewayOf(host.host_id);
  const there = gateway
    ? `ssh -p ${gateway.port} -l ${sandbox}@${room_id} ${gateway.host}`
    : `its API at ${host.url} says how it is reached (ssh-access)`;
  return `This room lives on ${host.host_id}: ${there}`;
}

/** Whom several organizations know, each with a room and an agent of these names. */
export const sentenceForSeveral = ({ room_id, sandbox }: Names): string =>
  `Several organizations have your key, and a sandbox ${sandbox} in a room ${room_id}. Name yours by its sandbox_id: sbx_…@${room_id}`;

/** Says so to whatever is asked for, and ends. */
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
