/** Connections of clients to exposed ports: limits on their number, rate and resource use, and their disconnection. */
import { StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import {
  MAX_ORG_PORT_CONNECTIONS,
  MAX_PORT_CONNECTIONS,
  MAX_SANDBOX_CONNECTIONS,
  MAX_SOCKET_MESSAGE_BYTES,
} from "../../../shared/api/ports.ts";
import { ServiceError } from "../../core/service-error.ts";
import { connectInGuest, type GuestPort } from "../../host/guest-link/connect.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import { Allowance } from "../../host/guest-link/pace.ts";
import { refusalOf } from "../../host/guest-link/terminal.ts";
import type { Pay } from "../../wire/byte-reader.ts";
import type { RequestRate, SandboxAccess } from "./deps.ts";
import type { PortRow } from "./table.ts";
import type { Traffic } from "./traffic.ts";
import type { Hold } from "./websocket/frames.ts";

/** Lines, chunks and messages of a sandbox's servers that are read per second: a tenth or two of a second of work if each had one byte. */
const READS_PER_SECOND = 131_072;
/** Maximum without a pause: others wait for their turn no longer than some milliseconds. */
const READS_AT_ONCE = 4096;
/** Limit on messages of a sandbox's WebSockets, in both directions, that are incomplete or not yet consumed. */
const MAX_HELD_BYTES = 6 * MAX_SOCKET_MESSAGE_BYTES;

/** A connection that this host can close. */
export interface OpenPort extends GuestPort {
  /** Reason for which this host closed it; null if it did not. */
  readonly cutBecause: string | null;
  /** Charges the sandbox's allowance of reads. */
  pay: Pay;
  /** Memory held for the sandbox; at the end of the connection its share is released. */
  hold: Hold;
}

/** Target of a connection; a null label is the daemon's own connection, which is not counted as the port's traffic. */
export type Goal = Pick<PortRow, "sandbox_id" | "org_id" | "port"> & { label: string | null };

interface Live {
  label: string | null;
  held: number;
  why: string | null;
  cut(why: string): void;
}

/** Connections of a sandbox, from its first request to its end. */
interface Group {
  /** Whether a watch for the end of the running state is active. */
  isWatched: boolean;
  org_id: string;
  live: Set<Live>;
  reads: Allowance;
  /** Null for any number. */
  requests: Allowance | null;
  held: number;
}

export class Connections {
  readonly #sandboxes: SandboxAccess;
  readonly #rate: RequestRate;
  readonly #traffic: Traffic;
  readonly #groups = new Map<string, Group>();

  constructor(sandboxes: SandboxAccess, rate: RequestRate, traffic: Traffic) {
    this.#sandboxes = sandboxes;
    this.#rate = rate;
    this.#traffic = traffic;
  }

  /** `first` is sent to the server immediately. Throws rate_limited, insufficient_capacity, port_not_listening, guest_unreachable. */
  async open({ label, sandbox_id, org_id, port }: Goal, first: Uint8Array): Promise<OpenPort> {
    const group = this.#groups.get(sandbox_id) ?? this.#groupOf(sandbox_id, org_id);
    if (group.requests?.take() === false) throw this.#tooOften();
    const live = this.#enter(group, label);
    let opened: GuestPort;
    try {
      const connect = (link: GuestLink) => {
        this.#watch(sandbox_id, group);
        return connectInGuest(link, port, first);
      };
      const made = await this.#sandboxes.withGuest(sandbox_id, connect, label === null ? "api" : "port");
      // A port that is no longer exposed is not counted: its counts would never be removed.
      const isCounted = label !== null && live.why === null;
      opened = isCounted ? this.#traffic.counted(label, made, first.byteLength) : made;
    } catch (error) {
      leave(group, live);
      throw label === null ? asServiceError(error) : asToldToStrangers(asServiceError(error));
    }
    live.cut = (why) => {
      live.why ??= why;
      opened.close();
    };
    const over = opened.ended.catch(() => {}).finally(() => leave(group, live));
    void this.#sandboxes.use(sandbox_id, () => over);
    if (live.why !== null) opened.close();
    return {
      ...opened,
      get cutBecause() {
        return live.why;
      },
      pay: (reads) => group.reads.pay(reads),
      hold: (bytes) => hold(group, live, bytes),
    };
  }

  cut(label: string, why: string): void {
    for (const { live } of this.#groups.values()) for (const each of [...live]) if (each.label === label) each.cut(why);
  }

  cutAll(why: string): void {
    for (const { live } of this.#groups.values()) for (const each of [...live]) each.cut(why);
  }

  #enter(group: Group, label: string | null): Live {
    const ofPort = [...group.live].filter((each) => each.label === label).length;
    if (group.live.size >= MAX_SANDBOX_CONNECTIONS || ofPort >= MAX_PORT_CONNECTIONS) {
      throw new ServiceError("insufficient_capacity", {
        detail: `Too many open connections: ${ofPort} to the port, ${group.live.size} to its sandbox.`,
      });
    }
    let ofOrg = 0;
    for (const { org_id, live } of this.#groups.values()) if (org_id === group.org_id) ofOrg += live.size;
    if (ofOrg >= MAX_ORG_PORT_CONNECTIONS) {
      throw new ServiceError("insufficient_capacity", {
        detail: `The ports of the organization have ${ofOrg} open connections, which is the maximum.`,
      });
    }
    const entered: Live = {
      label,
      held: 0,
      why: null,
      cut: (why) => {
        entered.why ??= why;
      },
    };
    group.live.add(entered);
    return entered;
  }

  #tooOften(): ServiceError {
    const { perSecond, burst } = this.#rate;
    return new ServiceError("rate_limited", {
      detail: `The ports of this sandbox got more than ${perSecond} requests a second.`,
      details: { limit: burst, per_second: perSecond },
      retryAfterSeconds: 1,
    });
  }

  #groupOf(sandboxId: string, org_id: string): Group {
    const { perSecond, burst } = this.#rate;
    const group: Group = {
      isWatched: false,
      org_id,
      live: new Set(),
      reads: new Allowance(READS_PER_SECOND, READS_AT_ONCE),
      requests: perSecond === 0 ? null : new Allowance(perSecond, burst),
      held: 0,
    };
    this.#groups.set(sandboxId, group);
    void this.#sandboxes.ended(sandboxId, new AbortController().signal).then(() => this.#groups.delete(sandboxId));
    return group;
  }

  /** Open connections are closed when the sandbox stops running: they would only wait. */
  #watch(sandboxId: string, group: Group): void {
    if (group.isWatched) return;
    group.isWatched = true;
    void this.#sandboxes.stopped(sandboxId, new AbortController().signal).then((state) => {
      group.isWatched = false;
      for (const each of [...group.live]) each.cut(`the sandbox is ${state}`);
    });
  }
}

function hold(group: Group, live: Live, bytes: number): boolean {
  // A connection that has ended holds nothing.
  if (!group.live.has(live)) return bytes <= 0;
  if (bytes > 0 && group.held + bytes > MAX_HELD_BYTES) return false;
  group.held += bytes;
  live.held += bytes;
  return true;
}

function leave(group: Group, live: Live): void {
  if (!group.live.delete(live)) return;
  group.held -= live.held;
}

/** A client may know only a port's address: the reason why the sandbox does not wake is for its organization only. */
function asToldToStrangers(error: ServiceError): ServiceError {
  if (error.code === "port_not_listening" || error.code === "guest_unreachable") return error;
  const code = error.code === "insufficient_capacity" ? error.code : "guest_unreachable";
  return new ServiceError(code, { detail: "The sandbox cannot take requests now.", cause: error });
}

function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const code = refusalOf(error);
  if (code === StreamErrorCode.port_not_listening) {
    return new ServiceError("port_not_listening", { detail: "Nothing listens on this port of the sandbox." });
  }
  if (code === StreamErrorCode.too_many_streams) {
    return new ServiceError("insufficient_capacity", { detail: "The sandbox is at its limit of concurrent work." });
  }
  return new ServiceError("guest_unreachable", { cause: error });
}
