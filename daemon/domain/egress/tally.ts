/** Owns what sandboxes have sent and received and is not written yet. */
import type { SandboxId } from "../../../shared/ids.ts";
import { describeError } from "../../core/service-error.ts";
import type { Place } from "../orgs/index.ts";
import type { EgressDeps } from "./deps.ts";
import { addTraffic, type Traffic } from "./store.ts";

export const NO_TRAFFIC: Traffic = { sent_bytes: 0, received_bytes: 0, connections: 0 };

export type TallyDeps = Pick<EgressDeps, "database" | "log" | "meter" | "isKept">;

export class Tally {
  readonly #deps: TallyDeps;
  #counted = new Map<SandboxId, { place: Place; traffic: Traffic }>();

  constructor(deps: TallyDeps) {
    this.#deps = deps;
  }

  count(sandboxId: SandboxId, place: Place, more: Traffic): void {
    this.#counted.set(sandboxId, { place, traffic: sumOf(this.of(sandboxId), more) });
  }

  of(sandboxId: string): Traffic {
    return this.#counted.get(sandboxId as SandboxId)?.traffic ?? NO_TRAFFIC;
  }

  /** Writes it; what could not be written is kept for the next time, and logged. */
  async write(): Promise<void> {
    const waiting = this.#counted;
    if (waiting.size === 0) return;
    this.#counted = new Map();
    const { database, log, meter, isKept } = this.#deps;
    try {
      await database.commit((queries) => {
        for (const [sandbox_id, { place, traffic }] of waiting) {
          const { org_id, room_uid } = place;
          // A row of one that was forgotten meanwhile would stay for good.
          if (isKept(queries, sandbox_id)) addTraffic(queries, { sandbox_id, org_id, room_uid, ...traffic });
          meter.count(place, { egress_bytes: traffic.sent_bytes });
        }
      });
    } catch (error) {
      log.error("egress traffic not written yet", { error: describeError(error) });
      for (const [sandboxId, { place, traffic }] of waiting) this.count(sandboxId, place, traffic);
    }
  }
}

export function sumOf(one: Traffic, other: Traffic): Traffic {
  return {
    sent_bytes: one.sent_bytes + other.sent_bytes,
    received_bytes: one.received_bytes + other.received_bytes,
    connections: one.connections + other.connections,
  };
}
