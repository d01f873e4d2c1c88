/** The egress entry that would allow a refused connection, and the command line that adds it. */
import type { SandboxNetwork } from "../../../shared/api/egress.ts";

export type Destination = SandboxNetwork["items"][number];

/** The names come from the guest: an invalid one is not offered in a command line. */
const NAME = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$/i;
const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;
const IPV6 = /^[0-9a-f:]*:[0-9a-f:.]*$/i;

/** Null if no entry would help, or if the target is not a valid name. */
export function entryFor({ host, ip, port, allowed, reason }: Destination): string | null {
  if (allowed || reason !== "not_listed") return null;
  const end = port === null ? "" : `:${port}`;
  if (host !== null) return NAME.test(host) ? `${host}${end}` : null;
  if (ip === null) return null;
  if (IPV4.test(ip)) return `${ip}${end}`;
  return IPV6.test(ip) ? (end ? `[${ip}]${end}` : ip) : null;
}

/**
 * The words of a command line that sets the whole list, including its current entries; it fails if the list was changed in the meantime.
 */
export function allowWords(
  { room, agent, list, revision }: { room: string; agent: string; list: readonly string[]; revision: number },
  entry: string,
): string[] {
  return ["egress", "set", room, agent, ...new Set([...list, entry]), "--if-revision", String(revision)];
}

const REASONS: Record<NonNullable<Destination["reason"]>, string> = {
  not_listed: "not on its list",
  blocked_address: "an address that no sandbox may reach",
  sni_mismatch: "TLS named another host than was looked up",
  sni_missing: "TLS named no host",
  host_mismatch: "HTTP named another host than was looked up",
  bad_request: "its request could not be read",
  other: "refused",
};
export const reasonWords = (reason: Destination["reason"]): string => (reason === null ? "refused" : REASONS[reason]);

export const placeText = ({ host, ip }: Destination): string => host ?? ip ?? "?";
