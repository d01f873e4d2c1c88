/** Syntax of listen addresses: host:port, IPv6 in brackets. */
import { isIP } from "node:net";
import { ConfigError } from "./config.ts";

/** Wildcard addresses: all addresses of the host. */
export const WILDCARDS: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** Parses host:port. Throws ConfigError that names the key. */
export function parseListen(key: string, listen: string, example: string): { hostname: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(listen);
  const [, v6, name, digits] = match ?? [];
  const port = Number(digits);
  const hostname = v6 ?? name;
  if (hostname === undefined || port > 65_535 || (v6 !== undefined && isIP(v6) !== 6)) {
    throw new ConfigError(`${key} = ${JSON.stringify(listen)}: must be host:port or [IPv6]:port, such as "${example}"`);
  }
  return { hostname, port };
}
