/** The method `listening`: ports with a listener that the method `connect` would reach. Makes no connection. */
import { readFile } from "node:fs/promises";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import type { ListeningResult } from "../../shared/agent-protocol/messages.ts";
import { InvalidRequest } from "../exec/request.ts";
import { AGENT_PORTS } from "./connect.ts";

const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];
/** State of a listening socket, as the kernel prints it. */
const LISTEN = "0A";
/** The wildcard and loopback addresses of IPv4 and IPv6, as four-byte words in little-endian order. */
const REACHED = new Set([
  "00000000",
  "0100007F",
  "00000000000000000000000000000000",
  "00000000000000000000000001000000",
  "0000000000000000FFFF000000000000",
  "0000000000000000FFFF00000100007F",
]);
const MAX_PORTS = 64;

/** Throws InvalidRequest. */
export async function listening(stream: Stream, request: object): Promise<void> {
  const { ports } = request as { ports?: unknown };
  if (!Array.isArray(ports) || ports.length > MAX_PORTS || !ports.every((port) => Number.isInteger(port))) {
    throw new InvalidRequest(`ports must be a list of at most ${MAX_PORTS} numbers`);
  }
  const tables = await Promise.all(TABLES.map((table) => readFile(table, "utf8").catch(() => "")));
  const found = new Set(tables.flatMap(listenersIn));
  const isOpen = (port: number) => found.has(port) && !AGENT_PORTS.includes(port);
  const result: ListeningResult = { ports: (ports as number[]).filter(isOpen) };
  stream.finish(result);
}

/** Parses lines such as `  0: 0100007F:1F90 00000000:0000 0A …`. */
export function listenersIn(table: string): number[] {
  return table.split("\n").flatMap((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    const [address = "", port = ""] = local.split(":");
    return state === LISTEN && REACHED.has(address) ? [Number.parseInt(port, 16)] : [];
  });
}
