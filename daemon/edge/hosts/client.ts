/**
 * HTTP/1.1 client for other hosts, with pooled connections. A request that the other host may have received is not repeated; that decision
 * is the caller's. A host that disappears silently is detected in liveness.ts.
 */
import { X509Certificate } from "node:crypto";
import type { Host } from "../../cluster/directory.ts";
import type { CallStats } from "../../core/call/call-stats.ts";
import { monotonicMs, startInterval, stopTimer } from "../../core/clock.ts";
import type { Certificate } from "../../core/config/certificate.ts";
import { parseJson } from "../../core/json.ts";
import { ServiceError } from "../../core/service-error.ts";
import { type ExchangeRequest, type ExchangeResponse, exchange, headOf } from "../../domain/ports/http/exchange.ts";
import { type Connection, type Goal, type Line, NotConnected } from "./connection.ts";
import { Dialing } from "./dialing.ts";
import { Liveness } from "./liveness.ts";

/** The fields by which another host is reached. */
export type Reached = Pick<Host, "host_id" | "address" | "certificate">;

export interface Outgoing extends ExchangeRequest {
  /** A body that is small enough to go with the head; its headers then contain its length. */
  whole?: Uint8Array;
  /** Whether a request that the host may have received can be repeated; called in that case only. Absent: yes. */
  mayRepeat?(): boolean;
}

export interface HostAnswer extends ExchangeResponse {
  line: Line;
  /**
   * For duplex sessions: starts to wait for data, and the line is closed if the host is gone. Call the returned function when data has
   * arrived.
   */
  wait(): () => void;
}

export interface HostClientOptions {
  /** Our certificate, shown to the other host. */
  certificate: Certificate;
  /** Call statistics; a call that the client cancelled is not counted. */
  tally?: CallStats;
  connectMs?: number;
  /** How long an idle connection is kept. */
  idleMs?: number;
  /** Most idle connections per host. */
  mostIdle?: number;
}

const CONNECT_MS = 1000;
const IDLE_MS = 60_000;
const MAX_IDLE = 64;
/** Checks for expired connections per idle time. */
const LOOKS = 12;

/** Connections to one host by its current connection parameters. */
interface Group {
  host: Reached;
  dialing: Dialing;
  idle: { connection: Connection; since: number }[];
  all: Set<Connection>;
  /** Requests that have received nothing yet. */
  waiting: Liveness;
}

export class HostClient {
  readonly #own: Certificate;
  readonly #tally: CallStats | undefined;
  readonly #connectMs: number;
  readonly #idleMs: number;
  readonly #mostIdle: number;
  readonly #groups = new Map<string, Group>();
  readonly #timer: Timer;
  /** Connections that were opened so far. */
  opened = 0;

  constructor({ certificate, tally, connectMs, idleMs, mostIdle }: HostClientOptions) {
    this.#own = certificate;
    this.#tally = tally;
    this.#connectMs = connectMs ?? CONNECT_MS;
    this.#idleMs = idleMs ?? IDLE_MS;
    this.#mostIdle = mostIdle ?? MAX_IDLE;
    this.#timer = startInterval(() => this.#closeOld(), this.#idleMs / LOOKS);
    this.#timer.unref();
  }

  /**
   * One exchange with the host. `gone` aborts when the caller disconnects, and ends the exchange. Rejects with host_unreachable, the reason
   * of `gone`, or an error of the request body.
   */
  async ask(host: Reached, outgoing: Outgoing, signal: AbortSignal): Promise<HostAnswer> {
    const since = monotonicMs();
    try {
      const answer = await this.#ask(host, outgoing, signal);
      this.#tally?.note(true, since);
      return answer;
    } catch (error) {
      if (!signal.aborted) this.#tally?.note(false, since);
      throw error;
    }
  }

  async #ask(host: Reached, outgoing: Outgoing, signal: AbortSignal): Promise<HostAnswer> {
    const group = this.#groupOf(host);
    const head = headOf(outgoing);
    const first = outgoing.whole === undefined ? head : Buffer.concat([head, outgoing.whole]);
    const { connection, line } = await this.#send(group, first, outgoing, signal);
    const stopWaiting = group.waiting.add(line.close);
    try {
      const keep = () => {
        line.keep();
        this.#keep(group, connection);
      };
      const answered = await exchange(line, outgoing, signal, { idleSeconds: null, toEnd: false, keep });
      stopWaiting();
      return { ...answered, line, wait: () => group.waiting.add(line.close) };
    } catch (error) {
      stopWaiting();
      signal.throwIfAborted();
      throw unanswered(host, outgoing, error);
    }
  }

  /** Closes the connections to hosts that are no longer members or have changed connection parameters. */
  keepOnly(hosts: readonly Reached[]): void {
    const kept = new Set(hosts.map(keyOf));
    for (const [key, group] of this.#groups) if (!kept.has(key)) this.#drop(key, group);
  }

  close(): void {
    stopTimer(this.#timer);
    for (const [key, group] of this.#groups) this.#drop(key, group);
  }

  /** Sends the request's first bytes over an idle or new connection, and returns that connection. */
  async #send(
    group: Group,
    first: Uint8Array,
    outgoing: Outgoing,
    signal: AbortSignal,
  ): Promise<{ connection: Connection; line: Line }> {
    for (;;) {
      const kept = group.idle.pop()?.connection;
      const connection = kept ?? (await this.#open(group));
      if (signal.aborted) this.#keep(group, connection);
      signal.throwIfAborted();
      const line = connection.begin();
      try {
        await line.write(first);
        return { connection, line };
      } catch (error) {
        line.close();
        // A pooled connection that had ended unnoticed, before the peer saw a byte of this request.
        if (kept && !line.isSeen) continue;
        throw line.isSeen ? unanswered(group.host, outgoing, error) : unreachable(group.host, error);
      }
    }
  }

  async #open(group: Group): Promise<Connection> {
    try {
      return this.#enter(group, await group.dialing.dial());
    } catch (error) {
      throw unreachable(group.host, error);
    }
  }

  /** Throws host_unreachable if the host was removed in the meantime. */
  #enter(group: Group, connection: Connection): Connection {
    this.opened++;
    if (!connection.isClosed) group.all.add(connection);
    connection.onClosed = () => {
      group.all.delete(connection);
      group.idle = group.idle.filter((each) => each.connection !== connection);
    };
    if (this.#groups.get(keyOf(group.host)) === group) return connection;
    connection.close();
    throw unreachable(group.host, new Error("it is no longer a member"));
  }

  /** Whether the host is reachable. A refused connection counts: that system also reports the end of other connections. */
  async #isThere(group: Group): Promise<boolean> {
    try {
      this.#keep(group, await this.#open(group));
      return true;
    } catch (error) {
      const cause = error instanceof ServiceError ? error.cause : null;
      return !(cause instanceof NotConnected && cause.why === "silent");
    }
  }

  #keep(group: Group, connection: Connection): void {
    if (group.idle.length >= this.#mostIdle) connection.close();
    if (!connection.isClosed) group.idle.push({ connection, since: monotonicMs() });
  }

  #closeOld(): void {
    const before = monotonicMs() - this.#idleMs;
    for (const { idle } of this.#groups.values()) {
      for (const { connection, since } of [...idle]) if (since < before) connection.close();
    }
  }

  #drop(key: string, { all, waiting }: Group): void {
    this.#groups.delete(key);
    waiting.stop();
    for (const connection of [...all]) connection.close();
  }

  #groupOf(host: Reached): Group {
    const key = keyOf(host);
    const known = this.#groups.get(key);
    if (known) return known;
    const all = new Set<Connection>();
    const waiting = new Liveness({
      heardAt: () => Math.max(...[...all].map((each) => each.heardAt)),
      isThere: () => this.#isThere(made),
    });
    const dialing = new Dialing({
      goal: goalOf(host),
      own: this.#own,
      withinMs: this.#connectMs,
      spare: (connection) => this.#keep(made, this.#enter(made, connection)),
    });
    const made: Group = { host, dialing, idle: [], all, waiting };
    this.#groups.set(key, made);
    return made;
  }
}

/** The error for a host that does not answer, or not in roomd's protocol. */
export function unreachable({ host_id }: Pick<Reached, "host_id">, cause: unknown): ServiceError {
  if (cause instanceof ServiceError) return cause;
  return new ServiceError("host_unreachable", {
    detail: `The host ${host_id}, which has the room, does not answer.`,
    details: { host: host_id },
    cause,
  });
}

/** The JSON of a host's response. Throws host_unreachable if it is malformed, or has more values. */
export function parsed(host: Pick<Reached, "host_id">, bytes: Uint8Array, mostValues?: number): unknown {
  try {
    return parseJson(bytes, mostValues);
  } catch (error) {
    throw unreachable(host, error);
  }
}

/** The error after the host may have received the call: whether it was carried out is unknown. */
export function unanswered(host: Pick<Reached, "host_id">, { mayRepeat }: Pick<Outgoing, "mayRepeat">, cause: unknown) {
  if (cause instanceof ServiceError || mayRepeat?.() !== false) return unreachable(host, cause);
  return new ServiceError("host_unreachable", {
    detail: `The host ${host.host_id}, which has the room, does not answer. The outcome of the call is unknown.`,
    details: { host: host.host_id, started: "unknown" },
    hint: "Check the outcome before you retry. A call with an Idempotency-Key can be repeated.",
    retryable: false,
    cause,
  });
}

function keyOf({ host_id, address, certificate }: Reached): string {
  return `${host_id} ${address} ${certificate}`;
}

/** Parses another host's address and certificate. Throws host_unreachable if the address is invalid. */
function goalOf(host: Reached): Goal {
  const [, v6, name, port] = /^(?:\[([^\]]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(host.address) ?? [];
  const hostname = v6 ?? name;
  if (hostname === undefined) throw unreachable(host, new Error(`${host.address} is not an address`));
  return { hostname, port: Number(port), certificate: new X509Certificate(host.certificate).raw };
}
