/**
 * Parser of the head of one HTTP/1 request (RFC 9112): its host, and the length of its body. Rejects input that two servers could read
 * differently.
 */
import { readAddress } from "./addresses.ts";
import { canonicalName, isAscii } from "./names.ts";

export type Body = { kind: "length"; bytes: number } | { kind: "chunked" };

export interface Head {
  /** Canonical host name, or the address in its usual spelling. */
  host: string;
  body: Body;
  /** Protocol for the rest of the connection if the server agrees to the upgrade. */
  upgrade: string | null;
}

/** Why a request is refused. */
export class BadRequest extends Error {
  override name = "BadRequest";
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const REQUEST_LINE = new RegExp(`^(${TOKEN}) (\\S+) HTTP/1\\.([01])$`);
const FIELD = new RegExp(`^(${TOKEN}):[ \\t]*(.*?)[ \\t]*$`);

/** Checks a request line, without its end, before the rest of the head has arrived. Throws BadRequest. */
export function requireRequestLine(line: string): void {
  const [, method] = REQUEST_LINE.exec(line) ?? [];
  if (method === undefined) throw new BadRequest("its first line is not HTTP/1");
  if (method === "CONNECT") throw new BadRequest("CONNECT is not allowed");
}

/** `text` is the head without its empty line, with CRLF line ends. Throws BadRequest. */
export function readHead(text: string): Head {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for.
  if (/[\x00-\x08\x0a-\x1f\x7f]/.test(text.replaceAll("\r\n", ""))) throw new BadRequest("it has control characters");
  const [requestLine = "", ...lines] = text.split("\r\n");
  requireRequestLine(requestLine);
  const [, , target = "", minor] = REQUEST_LINE.exec(requestLine) ?? [];
  const fields = new Map<string, string[]>();
  for (const line of lines) {
    const [, name, value = ""] = FIELD.exec(line) ?? [];
    if (name === undefined) throw new BadRequest("one of its header fields is not valid");
    const key = name.toLowerCase();
    fields.set(key, [...(fields.get(key) ?? []), value]);
  }
  const hosts = fields.get("host") ?? [];
  if (hosts.length !== 1) throw new BadRequest("it has no Host, or several");
  const host = hostOf(hosts[0] ?? "");
  if (!target.startsWith("/") && target !== "*") {
    const absolute = /^https?:\/\/([^/?#]*)/i.exec(target)?.[1];
    if (absolute === undefined || hostOf(absolute) !== host) throw new BadRequest("its target and its Host differ");
  }
  // Some servers accept the field without the Connection field that should name it.
  const upgrade = (fields.get("upgrade") ?? []).join(",").toLowerCase();
  const body = bodyOf(fields);
  // HTTP/1.0 has no chunks: some servers would parse them as requests.
  if (minor === "0" && body.kind === "chunked") throw new BadRequest("the length of its body is ambiguous");
  return { host, body, upgrade: upgrade === "" ? null : upgrade };
}

/** Fields that offer another protocol (RFC 9110, 7.8; RFC 7540, 3.2.1). They are hop-by-hop, so a proxy may remove them. */
const UPGRADES = new Set(["upgrade", "http2-settings"]);

/** Removes the offer of another protocol from a head that readHead has accepted. */
export function withoutUpgrade(text: string): string {
  const lines = text.split("\r\n").flatMap((line, index) => {
    const [, name = "", value = ""] = (index > 0 && FIELD.exec(line)) || [];
    const field = name.toLowerCase();
    if (UPGRADES.has(field)) return [];
    if (field !== "connection") return [line];
    const options = value.split(",").map((option) => option.trim());
    const left = options.filter((option) => option !== "" && !UPGRADES.has(option.toLowerCase()));
    return left.length === 0 ? [] : [`${name}: ${left.join(", ")}`];
  });
  return lines.join("\r\n");
}

function bodyOf(fields: ReadonlyMap<string, string[]>): Body {
  const encodings = fields.get("transfer-encoding") ?? [];
  const lengths = fields.get("content-length") ?? [];
  if (encodings.length > 0) {
    if (lengths.length > 0 || encodings.join(",").toLowerCase() !== "chunked") {
      throw new BadRequest("the length of its body is ambiguous");
    }
    return { kind: "chunked" };
  }
  if (lengths.length === 0) return { kind: "length", bytes: 0 };
  if (lengths.length > 1 || !/^\d{1,15}$/.test(lengths[0] ?? ""))
    throw new BadRequest("the length of its body is ambiguous");
  return { kind: "length", bytes: Number(lengths[0]) };
}

/** Without its port. Throws BadRequest. */
function hostOf(authority: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]+)\]|([^:@[\]]+))(?::\d{0,5})?$/.exec(authority) ?? [];
  const host = bracketed ?? plain ?? "";
  // A server compares the bytes themselves, without mapping names (IDNA).
  if (!isAscii(host)) throw new BadRequest("its Host is not in ASCII");
  if (host.endsWith(".")) throw new BadRequest("its Host ends with a dot");
  const found = readAddress(host)?.text ?? canonicalName(host);
  if (found === null) throw new BadRequest("its Host is not valid");
  return found;
}
