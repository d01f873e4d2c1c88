/**
 * The room's API on the guest's loopback: each request is forwarded to the host on its own stream, and the answer back. It needs and holds
 * no key: the host identifies the guest by the link.
 */
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import {
  Channel,
  ROOM_CALL_HEADERS,
  type RoomCallAnswered,
  type RoomCallRequest,
  StreamErrorCode,
} from "../../shared/agent-protocol/messages.ts";
import type { HostConnection } from "../host-connection.ts";
import { log } from "../log.ts";
import { ROOM, ROOM_COMMAND_PLACE } from "../runtime.ts";
import { GATEWAY_PORT } from "./place.ts";

const CLI_PATH = `${ROOM_COMMAND_PLACE}/room`;
const NO_BODY = [204, 205, 304];

export class Gateway {
  readonly #line: HostConnection;
  #server: { stop(closeActive: boolean): unknown } | null = null;

  constructor(line: HostConnection) {
    this.#line = line;
  }

  /** If it cannot listen, the guest works without it; the reason is logged. */
  listen(): void {
    try {
      this.#server = Bun.serve({
        hostname: "127.0.0.1",
        port: GATEWAY_PORT,
        // A client that waits for a message is idle.
        idleTimeout: 0,
        maxRequestBodySize: Number.MAX_SAFE_INTEGER,
        development: false,
        fetch: (request) => carry(this.#line, request),
      });
      mkdirSync(ROOM_COMMAND_PLACE, { recursive: true });
      rmSync(CLI_PATH, { force: true });
      symlinkSync(ROOM, CLI_PATH);
    } catch (error) {
      log("gateway", error);
    }
  }

  /** Removes access to the room from a guest without it. */
  forbid(): void {
    this.#server?.stop(true);
    this.#server = null;
    rmSync(CLI_PATH, { force: true });
  }
}

async function carry(line: HostConnection, request: Request): Promise<Response> {
  const url = new URL(request.url);
  const headers = Object.fromEntries(
    ROOM_CALL_HEADERS.flatMap((name) => {
      const value = request.headers.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
  const call: RoomCallRequest = {
    method: "room_call",
    http_method: request.method,
    path: `${url.pathname}${url.search}`,
    headers,
  };
  try {
    const stream = line.ask(call);
    // A disconnected client needs no answer.
    request.signal.addEventListener("abort", () => stream.fail(StreamErrorCode.detached, "the caller has gone"));
    sendBody(stream, request).catch((error: unknown) => stream.fail(StreamErrorCode.internal, String(error)));
    const { status, headers: answered } = await answerOf(stream);
    const body = request.method === "HEAD" || NO_BODY.includes(status) ? null : bodyOf(stream);
    return new Response(body, { status, headers: answered });
  } catch (error) {
    return unreachable(error);
  }
}

async function sendBody(stream: Stream, request: Request): Promise<void> {
  const reader = request.body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    if (!(await stream.write(Channel.stdin, part.value))) return;
  }
  stream.endChannel(Channel.stdin);
}

/** Rejects with StreamError if the host does not answer. */
function answerOf(stream: Stream): Promise<RoomCallAnswered> {
  const { promise, resolve, reject } = Promise.withResolvers<RoomCallAnswered>();
  stream.hear((event) => {
    if (Object(event).type === "answered") resolve(event as RoomCallAnswered);
  });
  stream.finished.then(() => reject(new Error("the host gave no answer")), reject);
  return promise;
}

function bodyOf(stream: Stream): ReadableStream<Uint8Array> {
  const chunks = stream.read(Channel.stdout);
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { value, done } = await chunks.next();
      if (!done) return controller.enqueue(value);
      // A broken stream is not reported as a complete one.
      await stream.finished.then(
        () => controller.close(),
        (error: unknown) => controller.error(error),
      );
    },
    cancel: () => stream.fail(StreamErrorCode.detached, "the caller has gone"),
  });
}

/** The host is temporarily unreachable, as during a restart of its service. */
function unreachable(error: unknown): Response {
  const detail = "The host does not answer at the moment.";
  log("room", error);
  const body = {
    type: "about:blank",
    title: "The service is not ready",
    status: 503,
    detail,
    code: "not_ready",
    retryable: true,
  };
  return Response.json(body, {
    status: 503,
    headers: { "Content-Type": "application/problem+json", "Retry-After": "1" },
  });
}
