/**
 * One HTTPS exchange with a receiver: connects to a checked address, uses TLS for the URL's name, posts, and reads the status of the
 * response. It uses no proxies, follows no redirects, and closes the connection to a receiver that is too slow or sends too much.
 */
import { isIP, type Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { startTimer, stopTimer, timeoutSignal } from "../../core/clock.ts";
import { errnoOf } from "../../core/service-error.ts";
import { ByteReader } from "../../wire/byte-reader.ts";
import { BadMessage } from "../../wire/http1/bad-message.ts";
import { ResponseParser, readBody, readHead } from "../../wire/http1/responses.ts";
import { serializeHead } from "../../wire/http1/serializer.ts";
import type { Address } from "../egress/addresses.ts";
import { dial } from "../egress/dial.ts";
import { hostOf, portOf, Unreachable } from "./ssrf-guard.ts";

/** Timeout from the connection to the status of the response. */
const ATTEMPT_MS = 15_000;
/** The body is ignored; a receiver that sends one may finish, within limits. */
const REST = { bytes: 64 * 1024, ms: 1000 };
const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME/;

export interface Posted {
  status: number;
  retryAfter: string | undefined;
}

/** Throws Unreachable, also if `given` aborts. */
export async function post(
  url: URL,
  addresses: readonly Address[],
  headers: Record<string, string>,
  body: string,
  given: AbortSignal,
): Promise<Posted> {
  const late = timeoutSignal(ATTEMPT_MS);
  const signal = AbortSignal.any([given, late]);
  let secure: TLSSocket | null = null;
  const cut = () => secure?.destroy(new Error("the request was cancelled"));
  signal.addEventListener("abort", cut, { once: true });
  try {
    const { socket } = await dial(addresses, portOf(url), signal);
    secure = secured(url, socket);
    if (signal.aborted) cut();
    const connection = secure;
    // The reader receives the error.
    connection.on("error", () => {});
    connection.write(requestOf(url, headers, body));
    const reader = new ByteReader(connection);
    const parser = new ResponseParser(reader.queue, "POST");
    const head = await readHead(reader, parser);
    await leaveRest(reader, parser, connection);
    return { status: head.status, retryAfter: head.headers.find(([name]) => name === "retry-after")?.[1] };
  } catch (error) {
    throw late.aborted
      ? new Unreachable(`${hostOf(url)} did not answer within ${ATTEMPT_MS / 1000} seconds.`)
      : unreachable(url, error);
  } finally {
    signal.removeEventListener("abort", cut);
    secure?.destroy();
  }
}

function secured(url: URL, socket: Socket): TLSSocket {
  const host = hostOf(url);
  return connect({ socket, host, ...(isIP(host) === 0 ? { servername: host } : {}), ALPNProtocols: ["http/1.1"] });
}

function requestOf(url: URL, headers: Record<string, string>, body: string): Buffer {
  const bytes = Buffer.from(body);
  const length = { "content-length": String(bytes.byteLength), connection: "close" };
  const all = Object.entries({ host: url.host, ...headers, ...length });
  return Buffer.concat([serializeHead(`POST ${url.pathname}${url.search} HTTP/1.1`, all), bytes]);
}

/** Reads some of the body; errors in it have no effect. */
async function leaveRest(reader: ByteReader, parser: ResponseParser, connection: TLSSocket): Promise<void> {
  const enough = startTimer(() => connection.destroy(), REST.ms);
  try {
    let left = REST.bytes;
    for await (const bytes of readBody(reader, parser)) {
      left -= bytes.byteLength;
      if (left <= 0) return;
    }
  } catch {
    return;
  } finally {
    stopTimer(enough);
  }
}

function unreachable(url: URL, error: unknown): Unreachable {
  const host = hostOf(url);
  const because = (words: string) => new Unreachable(words, { cause: error });
  if (error instanceof BadMessage) return because(`${host} did not answer in HTTP/1.1 (${error.message}).`);
  const code = errnoOf(error) ?? "";
  if (UNTRUSTED.test(code)) return because(`The certificate of ${host} is not trusted (${code}).`);
  if (code === "ECONNREFUSED") return because(`${host} refuses connections at port ${portOf(url)}.`);
  const message = error instanceof Error ? error.message : String(error);
  return because(`The connection to ${host} failed (${(code || message).slice(0, 100)}).`);
}
