/** Traffic of sandboxes that is not written yet, and the commits that write it with its destinations. */
import type { SandboxId } from "../../../shared/ids.ts";
import { describeError } from "../../core/service-error.ts";
import type { Consumer } from "../orgs/index.ts";
import type { EgressDeps } from "./deps.ts";
import type { Networks } from "./networks.ts";
import { addTraffic, saveNetwork, type Traffic } from "./store.ts";

/** Rows of destinations per write, however many names guests invent. */
export const MAX_ROWS_WRITTEN = 1000;
/** Sandboxes, or rows of destinations, per commit: a few milliseconds of work. */
const MAX_TOGETHER = 100;

export const NO_TRAFFIC: Traffic = { sent_bytes: 0, received_bytes: 0, connections: 0 };

export type TallyDeps = Pick<EgressDeps, "database" | "log" | "meter" | "isKept">;

export class Tally {
  readonly #deps: TallyDeps;
  readonly #networks: Networks;
  readonly #counted = new Map<SandboxId, { place: Consumer; traffic: Traffic }>();
  #writing: Promise<void> | null = null;

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

  /**
   * Writes the traffic; if a commit fails, that is logged, and the remainder retained for the next write. Single-flight: a concurrent call
   * awaits the write in progress.
   */
  write(mostRows = MAX_ROWS_WRITTEN): Promise<void> {
    this.#writing ??= this.#write(mostRows).finally(() => {
      this.#writing = null;
    });
    return this.#writing;
  }

  /** Writes everything after the write in progress. */
  async writeAll(): Promise<void> {
    while (this.#writing) await this.#writing;
    await this.write(Number.POSITIVE_INFINITY);
  }

  async #write(mostRows: number): Promise<void> {
    try {
      for (const waiting = [...this.#counted.keys()]; waiting.length > 0; )
        await this.#writeTraffic(waiting.splice(0, MAX_TOGETHER));
      for (let left = mostRows, rows = 1; rows > 0; left -= rows)
        rows = await this.#writeNetworks(Math.min(left, MAX_TOGETHER));
      this.#networks.written();
    } catch (error) {
      this.#deps.log.error("failed to write egress traffic; will retry", { error: describeError(error) });
    }
  }

  async #writeTraffic(sandboxIds: readonly SandboxId[]): Promise<void> {
    const { database, meter, isKept } = this.#deps;
    const counted = sandboxIds.flatMap((sandbox_id) => {
      const known = this.#counted.get(sandbox_id);
      return known ? [{ sandbox_id, ...known }] : [];
    });
    for (const { sandbox_id } of counted) this.#counted.delete(sandbox_id);
    try {
      await database.commit((queries) => {
        for (const { sandbox_id, place, traffic } of counted) {
          const { org_id, room_uid } = place;
          // A row of a sandbox that was deleted in the meantime would remain permanently.
          if (isKept(queries, sandbox_id)) addTraffic(queries, { sandbox_id, org_id, room_uid, ...traffic });
          meter.count(place, { egress_bytes: traffic.sent_bytes });
        }
      });
    } catch (error) {
      for (const { sandbox_id, place, traffic } of counted) this.count(sandbox_id, place, traffic);
      throw error;
    }
  }

  /** Returns the number of written destinations. */
  async #writeNetworks(mostRows: number): Promise<number> {
    const { database, isKept } = this.#deps;
    const taken = this.#networks.take(mostRows);
    if (taken.length === 0) return 0;
    try {
      await database.commit((queries) => {
        for (const { network, destinations } of taken) {
          if (isKept(queries, network.sandbox_id)) saveNetwork(queries, network, destinations);
        }
      });
    } catch (error) {
      for (const { of, destinations } of taken) of.giveBack(destinations);
      throw error;
    }
    return taken.reduce((sum, { destinations }) => sum + destinations.length + 1, 0);
  }
}

export function sumOf(one: Traffic, other: Traffic): Traffic {
  return {
    sent_bytes: one.sent_bytes + other.sent_bytes,
    received_bytes: one.received_bytes + other.received_bytes,
    connections: one.connections + other.connections,
  };
}
