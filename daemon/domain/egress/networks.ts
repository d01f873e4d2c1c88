/** Destinations of all sandboxes: in memory while there is a guest, and stored in the database. */
import type { SandboxId } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import type { EgressSandbox } from "./deps.ts";
import { Network } from "./network.ts";
import { networkOf } from "./store.ts";

export interface TakenNetwork extends ReturnType<Network["take"]> {
  of: Network;
}

export class Networks {
  readonly #queries: Queries;
  /** In the order in which they were written, the latest last. */
  readonly #all = new Map<SandboxId, Network>();
  /** Sandboxes without a guest: their networks are dropped once written. */
  readonly #ended = new Set<SandboxId>();

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  /** To be changed. */
  of({ sandbox_id, created_at }: Pick<EgressSandbox, "sandbox_id" | "created_at">): Network {
    this.#ended.delete(sandbox_id);
    const known = this.#all.get(sandbox_id);
    if (known) return known;
    const read = this.#read(sandbox_id, created_at);
    this.#all.set(sandbox_id, read);
    return read;
  }

  shown(sandboxId: SandboxId, createdAt: string): ReturnType<Network["shown"]> {
    return (this.#all.get(sandboxId) ?? this.#read(sandboxId, createdAt)).shown();
  }

  /** The guest is gone. */
  end(sandboxId: SandboxId): void {
    if (this.#all.has(sandboxId)) this.#ended.add(sandboxId);
  }

  /** Changed rows, at most `mostRows`: the networks that have waited longest come first. */
  take(mostRows: number): TakenNetwork[] {
    const taken: TakenNetwork[] = [];
    let left = mostRows;
    for (const [sandboxId, network] of [...this.#all]) {
      if (left <= 0) break;
      if (!network.isChanged) continue;
      const of = { of: network, ...network.take(left) };
      left -= of.destinations.length + 1;
      taken.push(of);
      this.#all.delete(sandboxId);
      this.#all.set(sandboxId, network);
    }
    return taken;
  }

  /** They are on disk. */
  written(): void {
    for (const sandboxId of this.#ended) {
      if (this.#all.get(sandboxId)?.isChanged) continue;
      this.#all.delete(sandboxId);
      this.#ended.delete(sandboxId);
    }
  }

  #read(sandboxId: SandboxId, createdAt: string): Network {
    return new Network(sandboxId, createdAt, networkOf(this.#queries, sandboxId));
  }
}
