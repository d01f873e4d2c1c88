/** Traffic of sandboxes that is not written yet, and the commit that writes it with its destinations. */
import type { SandboxId } from "../../../shared/ids.ts";
import { describeError } from "../../core/service-error.ts";
import type { Consumer } from "../orgs/index.ts";
import type { EgressDeps } from "./deps.ts";
import { MAX_ROWS_WRITTEN, type Networks } from "./networks.ts";
import { addTraffic, saveNetwork, type Traffic } from "./store.ts";

export const NO_TRAFFIC: Traffic = { sent_bytes: 0, received_bytes: 0, connections: 0 };

export type TallyDeps = Pick<EgressDeps, "database" | "log" | "meter" | "isKept">;

export class Tally {
  readonly #deps: TallyDeps;
  readonly #networks: Networks;
  #counted = new Map<SandboxId, { place: Consumer; traffic: Traffic }>();

  constructor(deps: TallyDeps, networks: Networks) {
    this.#deps = deps;
    this.#networks = networks;
  }

  count(sandboxId: SandboxId, place: Consumer, more: Traffic): void {
    this.#counted.set(sandboxId, { place, traffic: sumOf(this.of(sandboxId), more) });
  }

  of(sandboxId: string): Traffic {
    return this.#counted.get(sandboxId as SandboxId)?.traffic ?? NO_TRAFFIC;
  }

  /** Writes the traffic; if that fails, it is logged and retained for the next write. */
  async write(mostRows = MAX_ROWS_WRITTEN): Promise<void> {
    const waiting = this.#counted;
    const taken = this.#networks.take(mostRows);
    if (waiting.size === 0 && taken.length === 0) return this.#networks.written();
    this.#counted = new Map();
    const { database, log, meter, isKept } = this.#deps;
    try {
      await database.commit((queries) => {
        for (const [sandbox_id, { place, traffic }] of waiting) {
          const { org_id, room_uid } = place;
          // A row of a sandbox that was deleted in the meantime would remain permanently.
          if (isKept(queries, sandbox_id)) addTraffic(queries, { sandbox_id, org_id, room_uid, ...traffic });
          meter.count(place, { egress_bytes: traffic.sent_bytes });
        }
        for (const { network, destinations } of taken) {
          if (isKept(queries, network.sandbox_id)) saveNetwork(queries, network, destinations);
        }
      });
      this.#networks.written();
    } catch (error) {
      log.error("failed to write egress traffic; will retry", { error: describeError(error) });
      for (const [sandboxId, { place, traffic }] of waiting) this.count(sandboxId, place, traffic);
      for (const { of, destinations } of taken) of.giveBack(destinations);
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
