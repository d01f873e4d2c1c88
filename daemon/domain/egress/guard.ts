/**
 * Egress guard of one sandbox: decides on every name and every connection that its guest requests, by the current allowlist, and closes
 * connections that a new list no longer allows.
 */
import type { Stream } from "../../../shared/agent-protocol/link.ts";
import {
  type DnsRecord,
  type EgressRecords,
  type EgressResolved,
  StreamErrorCode,
} from "../../../shared/agent-protocol/messages.ts";
import { Allowance } from "../../host/guest-link/pace.ts";
import type { Address } from "./addresses.ts";
import { type Ground, Policy, type Verdict } from "./allowlist.ts";
import { carry, type Flow } from "./connection.ts";
import { decide, type Target } from "./decide.ts";
import { type Denial, Denials } from "./denials.ts";
import { dial } from "./dial.ts";
import { Inspector, NotThisName } from "./inspector.ts";
import { canonicalName } from "./names.ts";
import type { Where } from "./network.ts";
import { allowedRecords, nameBehindLabels, RECORD_TYPES } from "./records.ts";
import type { Traffic } from "./store.ts";

/** Open concurrently; far more than a browser or an installer makes. */
export const MAX_CONNECTIONS = 512;
const CONNECTS = { perSecond: 200, atOnce: MAX_CONNECTIONS } as const;
/** A program that queries both address families needs two lookups for each connection of CONNECTS. */
const LOOK_UPS = { perSecond: 400, atOnce: 800 } as const;
/**
 * Inspected parts of requests per second, at most a tenth or two of a second of work: a megabyte of chunks has hundreds, or half a million
 * of two bytes.
 */
const LOOKS = { perSecond: 131_072, atOnce: 4096 } as const;
const FIRST_MESSAGE_MS = 10_000;
const MAX_HOST_CHARACTERS = 255;
const NO_LONGER = "It is no longer on the sandbox's egress allowlist.";

export interface GuardDeps {
  ground: Ground;
  /** Addresses of a canonical name; empty if the name does not exist. Rejects if the lookup fails. */
  resolve(name: string): Promise<Address[]>;
  /** Records of a canonical name; empty if the name does not exist. Rejects if the lookup fails. */
  records(name: string, type: DnsRecord["type"]): Promise<DnsRecord[]>;
  /** Rate limit of each direction. */
  bytesPerSecond: number;
  /** Records an opened connection. Call the returned function with its traffic. */
  opened(endpoint: Where): (traffic: Traffic) => void;
  /** Called for each refusal. */
  refused(denial: Denial): void;
  /** Refusals that are alike, together. */
  record(denial: Denial & { count: number }): void;
}

interface Live {
  address: Address;
  port: number;
  bound: string | null;
  close(reason: string): void;
}

export class Guard {
  readonly #deps: GuardDeps;
  readonly #denials: Denials;
  readonly #live = new Set<Live>();
  readonly #pace: Pick<Flow, "out" | "in" | "looks">;
  readonly #connects = new Allowance(CONNECTS.perSecond, CONNECTS.atOnce);
  readonly #lookUps = new Allowance(LOOK_UPS.perSecond, LOOK_UPS.atOnce);
  #connecting = 0;
  #policy: Policy;

  constructor(allowlist: readonly string[], deps: GuardDeps) {
    this.#deps = deps;
    this.#policy = new Policy(allowlist, deps.ground);
    this.#denials = new Denials(deps.record);
    const pace = () => new Allowance(deps.bytesPerSecond, deps.bytesPerSecond);
    this.#pace = { out: pace(), in: pace(), looks: new Allowance(LOOKS.perSecond, LOOKS.atOnce) };
  }

  get connections(): number {
    return this.#live.size;
  }

  /** Applies a list, also to open connections. */
  setAllowlist(allowlist: readonly string[]): void {
    this.#policy = new Policy(allowlist, this.#deps.ground);
    for (const live of [...this.#live]) if (!this.#stillAllows(live)) live.close(NO_LONGER);
  }

  /** Carries out `egress_resolve`. */
  async resolve(stream: Stream, request: { name?: unknown }): Promise<void> {
    const answer = (answer: EgressResolved["answer"]) => stream.finish({ answer } satisfies EgressResolved);
    if (!this.#lookUps.take()) return answer("failed");
    const name = typeof request.name === "string" ? canonicalName(request.name) : null;
    if (name === null) return answer("none");
    if (this.#policy.isEmpty) {
      this.#deny({ host: name, ip: null, port: null, reason: "not_listed" });
      return answer("none");
    }
    // Not resolved: the connection to it is refused instead, with its port and the reason.
    if (!this.#policy.allowsName(name, null)) return answer("address");
    try {
      answer((await this.#deps.resolve(name)).length > 0 ? "address" : "none");
    } catch {
      answer("failed");
    }
  }

  /** Carries out `egress_records`. */
  async records(stream: Stream, request: { name?: unknown; type?: unknown }): Promise<void> {
    const answer = (answered: EgressRecords) => stream.finish(answered);
    const type = RECORD_TYPES.find((each) => each === request.type);
    if (!type) return stream.fail(StreamErrorCode.invalid_request, "this record type is not answered");
    if (!this.#lookUps.take()) return answer({ answer: "failed", records: [] });
    const name = typeof request.name === "string" ? canonicalName(request.name) : null;
    if (name === null) return answer({ answer: "none", records: [] });
    if (this.#policy.isEmpty) {
      this.#deny({ host: name, ip: null, port: null, reason: "not_listed" });
      return answer({ answer: "none", records: [] });
    }
    // As with addresses, the name is not resolved; a connection to it is refused with the reason.
    if (!this.#policy.allowsName(nameBehindLabels(name), null)) return answer({ answer: "found", records: [] });
    try {
      const found = await this.#deps.records(name, type);
      answer(allowedRecords(found, this.#policy));
    } catch {
      answer({ answer: "failed", records: [] });
    }
  }

  /** Carries out `egress_connect`; resolves when the connection has ended. */
  async connect(stream: Stream, request: { host?: unknown; port?: unknown }): Promise<void> {
    const { host, port } = request;
    if (typeof host !== "string" || host.length > MAX_HOST_CHARACTERS || !isPort(port)) {
      return stream.fail(StreamErrorCode.invalid_request, "host and port are needed");
    }
    if (this.#live.size + this.#connecting >= MAX_CONNECTIONS || !this.#connects.take()) {
      return stream.fail(StreamErrorCode.too_many_connections, "The sandbox has too many connections.");
    }
    this.#connecting++;
    const cancellation = new AbortController();
    const abort = () => cancellation.abort();
    stream.finished.then(abort, abort);
    let target: Target | null;
    let dialled: Awaited<ReturnType<typeof dial>>;
    try {
      target = await this.#decide(stream, host, port);
      if (!target) return;
      dialled = await dial(target.addresses, port, cancellation.signal);
    } catch {
      return stream.fail(StreamErrorCode.egress_unreachable, `No answer from ${host}:${port}.`);
    } finally {
      this.#connecting--;
    }
    await this.#carry(stream, target, dialled);
  }

  close(): void {
    for (const live of [...this.#live]) live.close("The sandbox has ended.");
    this.#denials.flush();
  }

  #stillAllows({ address, port, bound }: Pick<Live, "address" | "port" | "bound">): boolean {
    if (bound === null) return this.#policy.ofAddress(address, port) === "allowed";
    return this.#policy.allowsName(bound, port) && this.#policy.ofResolved(address, port) === "allowed";
  }

  async #carry(stream: Stream, target: Target, { socket, address }: Awaited<ReturnType<typeof dial>>): Promise<void> {
    const { name, port, bound } = target;
    const close = (reason: string) => {
      socket.destroy();
      stream.fail(StreamErrorCode.egress_denied, reason);
    };
    const live: Live = { address, port, bound, close };
    // The list may have changed while the connection was dialled.
    if (!this.#stillAllows(live)) return close(NO_LONGER);
    this.#live.add(live);
    const count = this.#deps.opened({ host: name, ip: address.text, port });
    const flow: Flow = {
      ...this.#pace,
      firstMessageMs: FIRST_MESSAGE_MS,
      sent: (sent_bytes) => count({ sent_bytes, received_bytes: 0, connections: 0 }),
      received: (received_bytes) => count({ sent_bytes: 0, received_bytes, connections: 0 }),
    };
    try {
      await carry(stream, socket, bound === null ? null : new Inspector(bound), flow);
    } catch (error) {
      if (!(error instanceof NotThisName)) throw error;
      const { reason, presented, message } = error;
      this.#deny({ host: name, ip: address.text, port, reason, ...(presented === null ? {} : { presented }) });
      close(`The connection to ${name}:${port} is refused: ${message}.`);
    } finally {
      this.#live.delete(live);
    }
  }

  /** The allowed target, or null if refused. Throws if the name cannot be resolved. */
  async #decide(stream: Stream, host: string, port: number): Promise<Target | null> {
    const { resolve } = this.#deps;
    const decided = await decide(host, port, { policy: () => this.#policy, resolve });
    return "verdict" in decided ? this.#refuse(stream, decided.verdict, { ...decided.where, port }) : decided;
  }

  #deny(denial: Denial): void {
    this.#denials.add(denial);
    this.#deps.refused(denial);
  }

  #refuse(
    stream: Stream,
    verdict: Exclude<Verdict, "allowed">,
    endpoint: Pick<Denial, "host" | "ip"> & { port: number },
  ): null {
    this.#deny({ ...endpoint, reason: verdict });
    const place = endpoint.host ?? endpoint.ip ?? "";
    const to = place.includes(":") ? `[${place}]:${endpoint.port}` : `${place}:${endpoint.port}`;
    const why =
      verdict === "not_listed" ? "is not on this sandbox's egress allowlist" : "cannot be reached from a sandbox";
    stream.fail(StreamErrorCode.egress_denied, `${to} ${why}.`);
    return null;
  }
}

function isPort(port: unknown): port is number {
  return typeof port === "number" && Number.isInteger(port) && port >= 1 && port <= 65_535;
}
