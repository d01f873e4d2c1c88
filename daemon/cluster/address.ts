/**
 * Parser of `cluster.url`: `postgres://user:password@host:port/database`, with `host=/directory` for a socket, and `sslmode` and
 * `sslrootcert` as in libpq. Several servers are separated by commas, `host:port,host:port`: queries go to the primary among them. Without
 * `sslmode` a server that is not on this host must prove its name.
 */
import { readFileSync } from "node:fs";

const PORT = 5432;
const MODES = ["disable", "require", "verify-full"] as const;
const PARAMETERS = ["host", "sslmode", "sslrootcert", "target_session_attrs"];
/** Both values are valid and have no effect: every server must be writable anyway. */
const WANTED = ["primary", "read-write"];
/** Limit of servers: all of them may be connected to concurrently. */
const MAX_SERVERS = 8;

export interface Address {
  /** Host name or address, or the directory of a Unix socket. */
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** Null: not encrypted. */
  tls: { proven: boolean; authority: string | null } | null;
}

/** In the order of the URL. Throws a message for the author of an invalid URL. */
export function readAddresses(text: string): Address[] {
  const [, before = "", servers = "", after = ""] = /^([^/]*\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(text) ?? [];
  const each = servers.split(",");
  if (each.length > MAX_SERVERS) throw new Error(`it may name ${MAX_SERVERS} servers at most`);
  const addresses = each.map((server) => readAddress(`${before}${server}${after}`));
  if (each.length > 1 && addresses.some(({ host }) => host.startsWith("/")))
    throw new Error("it names a socket by host=, and several servers as well");
  return addresses;
}

function readAddress(text: string): Address {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol))
    throw new Error("it must be postgres://user@host/database");
  const unknown = [...url.searchParams.keys()].filter((each) => !PARAMETERS.includes(each));
  if (unknown.length > 0) throw new Error(`it has ${unknown.join(", ")}: only ${PARAMETERS.join(", ")} may be there`);
  const sessionAttrs = url.searchParams.get("target_session_attrs") ?? "primary";
  if (!WANTED.includes(sessionAttrs)) throw new Error(`target_session_attrs must be one of ${WANTED.join(", ")}`);
  const host = url.searchParams.get("host") ?? url.hostname.replace(/^\[(.*)\]$/, "$1");
  const user = decodeURIComponent(url.username);
  if (host === "" || user === "") throw new Error("it must name a host and a user");
  return {
    host,
    port: url.port === "" ? PORT : Number(url.port),
    user,
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)) || user,
    tls: readTls(url.searchParams, host),
  };
}

function readTls(parameters: URLSearchParams, host: string): Address["tls"] {
  const isHere = host.startsWith("/") || host === "localhost" || host === "::1" || host.startsWith("127.");
  const mode = parameters.get("sslmode") ?? (isHere ? "disable" : "verify-full");
  if (!MODES.some((each) => each === mode)) throw new Error(`sslmode must be one of ${MODES.join(", ")}`);
  if (mode === "disable" || host.startsWith("/")) return null;
  const file = parameters.get("sslrootcert");
  return { proven: mode === "verify-full", authority: file === null ? null : readFileSync(file, "utf8") };
}
