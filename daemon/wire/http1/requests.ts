/** Parser of the HTTP/1 requests on a connection. Rejects CONNECT: the bytes after it are no requests. */
import type { ByteQueue } from "../byte-queue.ts";
import { BadMessage } from "./bad-message.ts";
import { declaredFraming, type Framing, type Header, valuesOf } from "./headers.ts";
import { MessageParser } from "./message-parser.ts";

const START = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e\x80-\x9f\xa1-\xff]+) HTTP\/1\.([01])$/;
const AUTHORITY = /^(?:\[([\da-fA-F:.]+)\]|([^:@[\]/?#\\]+))(?::\d{0,5})?$/;
const VISIBLE = /^[\x21-\x7e]+$/;

interface RequestStart {
  method: string;
  target: string;
  minor: number;
}

export interface RequestHead extends RequestStart {
  headers: Header[];
  /** The host that it is for, in lower case, without port and brackets: of its target too, if that has one. */
  host: string;
  framing: Framing;
  isLast: false;
}

export class RequestParser extends MessageParser<RequestStart, RequestHead> {
  constructor(queue: ByteQueue) {
    super(queue, "request");
  }

  protected readStart(line: string): RequestStart {
    const [, method, target = "", minor] = START.exec(line) ?? [];
    if (method === undefined) throw new BadMessage("the first line is not HTTP/1");
    if (method === "CONNECT") throw new BadMessage("CONNECT is not allowed");
    return { method, target, minor: Number(minor) };
  }

  protected readHead(start: RequestStart, headers: Header[]): RequestHead {
    const hosts = valuesOf(headers, "host");
    if (hosts.length !== 1) throw new BadMessage("no Host, or several");
    const host = hostOf(hosts[0] ?? "");
    const { method, target, minor } = start;
    if (!target.startsWith("/") && !(target === "*" && method === "OPTIONS")) {
      const absolute = /^https?:\/\/([^/?#]*)/i.exec(target)?.[1];
      if (absolute === undefined || hostOf(absolute) !== host)
        throw new BadMessage("a target that differs from its Host");
    }
    const framing = declaredFraming(headers, minor, valuesOf(headers, "content-length"));
    return { ...start, headers, host, framing: framing ?? { kind: "none" }, isLast: false };
  }
}

/** Throws BadMessage. */
function hostOf(authority: string): string {
  const [, bracketed, plain] = AUTHORITY.exec(authority) ?? [];
  const host = bracketed ?? plain ?? "";
  // A server compares the bytes themselves, without mapping names (IDNA).
  if (!VISIBLE.test(host)) throw new BadMessage("an invalid Host");
  return host.toLowerCase();
}
