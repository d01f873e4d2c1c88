/**
 * Protocol by which hosts transfer rooms and compare their audit: paths of the listener for hosts, which clients cannot reach.
 *
 *     POST /hosts/rooms/<room_uid>          a room's file, answered when it is complete there
 *     POST /hosts/rooms/<room_uid>/fits     which parts of it could be loaded here, before it is sent
 *     POST /hosts/rooms/<room_uid>/settle   the cluster directory has changed, or will not
 *     POST /hosts/audit                     which of these heads the host's chain of an organization lacks
 */

import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type ErrorCode, errorKind, type Problem } from "../../../shared/api/errors.ts";
import { newId, ROOM_UID_PATTERN, type RoomUid } from "../../../shared/ids.ts";
import type { Host } from "../../cluster/directory.ts";
import { startTimer, stopTimer, timeoutSignal } from "../../core/clock.ts";
import { parseJson } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { ServiceError } from "../../core/service-error.ts";
import { type Head, MAX_NAMED } from "../../domain/audit/index.ts";
import type { Arrived, FitsAnswer, PeerCalls, Peers, Settled } from "../../domain/rooms/index.ts";
import { toProblem } from "../pipeline/problem.ts";
import { type HostClient, parsed, unreachable } from "./client.ts";

const PATH = /^\/hosts\/rooms\/(\w+)(?:\/(settle|fits))?$/;
const AUDIT_PATH = "/hosts/audit";
const ROOM_UID = new RegExp(ROOM_UID_PATTERN);
/** Silence during a room transfer after which the other host is considered unreachable. */
const SILENCE_MS = 60_000;
const MAX_QUESTION_BYTES = 4 * 1024 ** 2;
/**
 * Timeout from the last byte that the other host accepted to its response, plus a time per MiB: it creates the drive from the file and
 * flushes it to disk.
 */
const ANSWER_MS = 60_000;
const ANSWER_MS_PER_MIB = 100;

const headsAsked = Type.Object({
  org_id: Type.String({ maxLength: 64 }),
  heads: Type.Array(Type.Object({ seq: Type.Integer({ minimum: 0 }), hash: Type.String({ maxLength: 64 }) }), {
    maxItems: MAX_NAMED,
  }),
});

/** Calls of other hosts. */
export interface HostCalls extends PeerCalls {
  lostHeads(orgId: string, heads: readonly Head[], over: AbortSignal): Promise<number[]>;
}

/** The response to another host; null: another path. */
export function answerPeer(calls: HostCalls, log: Log, request: Request, url: URL): Promise<Response> | null {
  if (url.pathname === AUDIT_PATH && request.method === "POST") {
    return answered(log, async () => {
      const question = request.body && (await questionIn(request.body));
      if (Value.Check(headsAsked, question))
        return { lost: await calls.lostHeads(question.org_id, question.heads, request.signal) };
      throw new ServiceError("invalid_body", { detail: "Malformed request from another host." });
    });
  }
  const [, roomUid, asks] = PATH.exec(url.pathname) ?? [];
  if (roomUid === undefined || !ROOM_UID.test(roomUid) || request.method !== "POST") return null;
  return answered(log, async () => {
    if (asks === "settle") return await calls.settle(roomUid as RoomUid);
    if (!request.body) throw new ServiceError("invalid_body", { detail: "The body contains no room." });
    if (asks === "fits") return await calls.fits(await questionIn(request.body));
    return await calls.receive(roomUid as RoomUid, bytesOf(request.body), request.signal);
  });
}

async function answered(log: Log, work: () => Promise<object>): Promise<Response> {
  try {
    return Response.json(await work());
  } catch (error) {
    const problem = toProblem(error, newId("req"), log);
    return Response.json(problem, { status: problem.status });
  }
}

/** Throws invalid_body. */
async function questionIn(body: ReadableStream<Uint8Array>): Promise<unknown> {
  const parts: Uint8Array[] = [];
  let left = MAX_QUESTION_BYTES;
  for await (const part of bytesOf(body)) {
    left -= part.byteLength;
    if (left < 0) throw new ServiceError("invalid_body", { detail: "The request is too long." });
    parts.push(part);
  }
  try {
    return parseJson(Buffer.concat(parts));
  } catch (cause) {
    throw new ServiceError("invalid_body", { cause });
  }
}

/** Client for these calls to another host. */
export class PeerClient implements Peers {
  readonly #client: HostClient;

  constructor(client: HostClient) {
    this.#client = client;
  }

  async send(host: Host, roomUid: RoomUid, file: AsyncIterable<Uint8Array>, over: AbortSignal): Promise<Arrived> {
    const silence = new Silence(SILENCE_MS);
    const signal = AbortSignal.any([over, silence.signal]);
    try {
      return (await this.#ask(host, `/hosts/rooms/${roomUid}`, silence.watched(file), signal)) as Arrived;
    } catch (error) {
      throw silence.signal.aborted ? unreachable(host, silence.signal.reason) : error;
    } finally {
      silence.end();
    }
  }

  async fits(host: Host, roomUid: RoomUid, request: object, over: AbortSignal): Promise<FitsAnswer> {
    const body = new Blob([JSON.stringify(request)]).stream() as ReadableStream<Uint8Array>;
    const signal = AbortSignal.any([over, timeoutSignal(ANSWER_MS)]);
    return (await this.#ask(host, `/hosts/rooms/${roomUid}/fits`, body, signal)) as FitsAnswer;
  }

  async settle(host: Host, roomUid: RoomUid, over: AbortSignal): Promise<Settled> {
    return (await this.#ask(host, `/hosts/rooms/${roomUid}/settle`, null, over)) as Settled;
  }

  /** Seqs of heads that the host's chain lacks. Rejects with host_unreachable. */
  async lostHeads(host: Host, org_id: string, heads: readonly Head[], over: AbortSignal): Promise<number[]> {
    const body = new Blob([JSON.stringify({ org_id, heads })]).stream() as ReadableStream<Uint8Array>;
    return ((await this.#ask(host, AUDIT_PATH, body, over)) as { lost: number[] }).lost;
  }

  async #ask(
    host: Host,
    target: string,
    body: ReadableStream<Uint8Array> | null,
    signal: AbortSignal,
  ): Promise<unknown> {
    const headers: [string, string][] = [["host", host.address]];
    const outgoing = { method: "POST", target, headers, body, length: body === null ? 0 : null };
    const { head, body: responseBody } = await this.#client.ask(host, outgoing, signal);
    if (responseBody instanceof ReadableStream) throw unreachable(host, new Error("its response is too long"));
    const result = parsed(host, responseBody ?? new Uint8Array(0));
    if (head.status === 200) return result;
    throw asError(host, result as Partial<Problem>);
  }
}

/** Measures the time since the other host last accepted data. */
class Silence {
  readonly #end = new AbortController();
  readonly #ms: number;
  #timer: Timer;

  constructor(ms: number) {
    this.#ms = ms;
    this.#timer = this.#from(ms);
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  watched(file: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
    const source = file[Symbol.asyncIterator]();
    let sent = 0;
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          this.#restart(this.#ms);
          const { done, value } = await source.next();
          if (!done) {
            sent += value.byteLength;
            return controller.enqueue(value);
          }
          this.#restart(ANSWER_MS + (sent / 1024 ** 2) * ANSWER_MS_PER_MIB);
          controller.close();
        },
        cancel: async () => void (await source.return?.()),
      },
      { highWaterMark: 0 },
    );
  }

  end(): void {
    stopTimer(this.#timer);
  }

  #restart(ms: number): void {
    stopTimer(this.#timer);
    this.#timer = this.#from(ms);
  }

  #from(ms: number): Timer {
    return startTimer(() => this.#end.abort(new Error(`it read nothing for ${ms} ms`)), ms);
  }
}

async function* bytesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** An error of the other host is passed on with its code and text. */
function asError(host: Host, { code, detail, hint, details }: Partial<Problem>): ServiceError {
  if (code === undefined || errorKind(code as ErrorCode) === undefined) {
    return unreachable(host, new Error("its response is malformed"));
  }
  return new ServiceError(code as ErrorCode, {
    detail: `${host.host_id}: ${detail}`,
    ...(hint ? { hint } : {}),
    ...(details ? { details: details as Record<string, unknown> } : {}),
  });
}
