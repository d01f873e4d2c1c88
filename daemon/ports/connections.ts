/** Owns the connections that clients have to exposed ports: how many there may be, and cutting them. */
import { StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { MAX_PORT_CONNECTIONS, MAX_SANDBOX_CONNECTIONS } from "../../shared/api/ports.ts";
import { ServiceError } from "../core/service-error.ts";
import { connectInGuest, type GuestPort } from "../host/guest-link/connect.ts";
import { refusalOf } from "../host/guest-link/terminal.ts";
import type { SandboxAccess } from "./index.ts";
import type { PortRow } from "./table.ts";

/** A connection that can be cut from our side. */
export interface OpenPort extends GuestPort {
  /** Why it was cut; null while it was not. */
  readonly cutBecause: string | null;
}

interface Live {
  label: string;
  cut(why: string): void;
}

export class Connections {
  readonly #sandboxes: SandboxAccess;
  readonly #live = new Map<string, Set<Live>>();

  constructor(sandboxes: SandboxAccess) {
    this.#sandboxes = sandboxes;
  }

  /** Throws insufficient_capacity, port_not_listening, guest_unreachable. */
  async open({ label, sandbox_id, port }: PortRow): Promise<OpenPort> {
    const live = this.#enter(label, sandbox_id);
    let opened: GuestPort;
    try {
      opened = await this.#sandboxes.withGuest(sandbox_id, (link) => connectInGuest(link, port));
    } catch (error) {
      this.#leave(sandbox_id, live);
      throw asServiceError(error);
    }
    let cutBecause: string | null = live.why;
    live.cut = (why) => {
      cutBecause ??= why;
      opened.close();
    };
    const over = opened.ended.catch(() => {}).finally(() => this.#leave(sandbox_id, live));
    void this.#sandboxes.use(sandbox_id, () => over);
    if (cutBecause !== null) opened.close();
    return {
      ...opened,
      get cutBecause() {
        return cutBecause;
      },
    };
  }

  cut(label: string, why: string): void {
    for (const all of this.#live.values()) for (const live of [...all]) if (live.label === label) live.cut(why);
  }

  cutAll(why: string): void {
    for (const all of this.#live.values()) for (const live of [...all]) live.cut(why);
  }

  #enter(label: string, sandboxId: string): Live & { why: string | null } {
    const all = this.#live.get(sandboxId) ?? this.#watch(sandboxId);
    const ofPort = [...all].filter((each) => each.label === label).length;
    if (all.size >= MAX_SANDBOX_CONNECTIONS || ofPort >= MAX_PORT_CONNECTIONS) {
      throw new ServiceError("insufficient_capacity", {
        detail: `The port has ${ofPort} open connections and its sandbox ${all.size}, which is the most.`,
      });
    }
    const live = {
      label,
      why: null as string | null,
      cut: (why: string) => {
        live.why ??= why;
      },
    };
    all.add(live);
    return live;
  }

  #leave(sandboxId: string, live: Live): void {
    const all = this.#live.get(sandboxId);
    all?.delete(live);
  }

  /** What is open is cut when the guest stands still: it would only wait. */
  #watch(sandboxId: string): Set<Live> {
    const all = new Set<Live>();
    this.#live.set(sandboxId, all);
    void this.#sandboxes.stopped(sandboxId, new AbortController().signal).then((state) => {
      if (this.#live.get(sandboxId) === all) this.#live.delete(sandboxId);
      for (const live of [...all]) live.cut(`the sandbox is ${state}`);
    });
    return all;
  }
}

function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const code = refusalOf(error);
  if (code === StreamErrorCode.port_not_listening) {
    return new ServiceError("port_not_listening", { detail: "Nothing listens on this port of the sandbox." });
  }
  if (code === StreamErrorCode.too_many_streams) {
    return new ServiceError("insufficient_capacity", { detail: "The sandbox does as much at once as it may." });
  }
  return new ServiceError("guest_unreachable", { cause: error });
}
