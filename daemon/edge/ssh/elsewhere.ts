/** Owns what somebody is told who has logged in for a room that another host has: where it is, and that is all. */
import type { Connection as Client, ServerChannel } from "ssh2";
import type { Directory } from "../../cluster/directory.ts";
import type { Caller } from "../../core/operation.ts";

/** What is known of other hosts. */
export interface OtherHosts {
  elsewhere: Directory["elsewhere"];
  /** Where their gateways are reached; null: that is not known. */
  gatewayOf(hostId: string): { host: string; port: number } | null;
}

interface Names {
  room_id: string;
  sandbox: string;
}

/** Who has a good key and asks for nothing is cut off after this. */
const ASKS_WITHIN_MS = 10_000;
const FAILED = 255;

/** The sentence for a caller that may enter the room; null: no other host has it, or that is not known. Never rejects. */
export async function sentenceFor(
  hosts: OtherHosts,
  caller: Caller,
  { room_id, sandbox }: Names,
): Promise<string | null> {
  const { org_id, room_ids } = caller;
  if (room_ids !== null && !room_ids.includes(room_id)) return null;
  const host = await hosts.elsewhere(org_id, room_id).catch(() => null);
  if (!host) return null;
  const gateway = hosts.gatewayOf(host.host_id);
  const there = gateway
    ? `ssh -p ${gateway.port} -l ${sandbox}@${room_id} ${gateway.host}`
    : `its API at ${host.url} says how it is reached (ssh-access)`;
  return `This room lives on ${host.host_id}: ${there}`;
}

/** Says so to whatever is asked for, and ends. */
export function serveElsewhere(client: Client, sentence: string, end: () => void): void {
  const timer = setTimeout(end, ASKS_WITHIN_MS);
  client.once("close", () => clearTimeout(timer));
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
