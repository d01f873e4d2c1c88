/**
 * Destinations of one sandbox's connections and refusals. Its guest may request any number of names: `MAX_DESTINATIONS` of each kind are
 * tracked separately; the least recently used one is evicted for the next and counted with the others.
 */
import type { SandboxNetwork } from "../../../shared/api/egress.ts";
import type { SandboxId } from "../../../shared/ids.ts";
import { at, wallMs } from "../../core/clock.ts";
import type { Denial } from "./denials.ts";
import type { DestinationRow, NetworkRow, Traffic } from "./store.ts";

/** Per kind: many refusals do not evict allowed destinations. */
export const MAX_DESTINATIONS = 250;

/** Destination of a connection or of a refused attempt. */
export type Where = Pick<Denial, "host" | "ip" | "port">;

interface Destination extends Omit<DestinationRow, "sandbox_id" | "first_at" | "last_at"> {
  key: string;
  first_ms: number;
  last_ms: number;
}

export class Network {
  readonly #sandboxId: SandboxId;
  readonly #since: string;
  /** By identity, the least recently used first. */
  readonly #allowed = new Map<string, Destination>();
  readonly #refused = new Map<string, Destination>();
  readonly #others = { allowed: 0, refused: 0 };
  /** Destinations that differ from the stored rows. */
  readonly #changed = new Set<Destination>();
  #othersChanged = false;

  /** From the stored rows; `since` applies if none exist. */
  constructor(
    sandboxId: SandboxId,
    since: string,
    { network, destinations }: { network: NetworkRow | null; destinations: readonly DestinationRow[] },
  ) {
    this.#sandboxId = sandboxId;
    this.#since = network?.since ?? since;
    this.#others = { allowed: network?.allowed ?? 0, refused: network?.refused ?? 0 };
    for (const { sandbox_id: _, first_at, last_at, ...row } of destinations) {
      const key = keyOf(row, row.reason);
      this.#of(row.allowed).set(key, { ...row, key, first_ms: Date.parse(first_at), last_ms: Date.parse(last_at) });
    }
  }

  get isChanged(): boolean {
    return this.#othersChanged || this.#changed.size > 0;
  }

  /** Records an opened connection. Call the returned function with its traffic. */
  opened(endpoint: Where): (traffic: Traffic) => void {
    const destination = this.#meet(endpoint, null);
    return ({ sent_bytes, received_bytes }) => {
      // An evicted destination is no longer counted.
      if (this.#allowed.get(destination.key) !== destination) return;
      destination.sent_bytes += sent_bytes;
      destination.received_bytes += received_bytes;
      this.#touch(destination);
    };
  }

  refused(denial: Denial): void {
    this.#meet(denial, denial.reason);
  }

  /** The newest first. */
  shown(): Omit<SandboxNetwork, "sandbox_id" | "agent_id"> {
    const all = [...this.#allowed.values(), ...this.#refused.values()].reverse().sort((a, b) => b.last_ms - a.last_ms);
    return {
      since: this.#since,
      items: all.map(({ key: _, slot: __, first_ms, last_ms, ...rest }) => ({
        ...rest,
        first_at: at(first_ms),
        last_at: at(last_ms),
      })),
      other: { ...this.#others },
    };
  }

  /** Takes changed rows to write, at most `most` destinations; they count as written from now on. */
  take(most: number): { network: NetworkRow; destinations: DestinationRow[] } {
    const taken = [...this.#changed].slice(0, most);
    for (const each of taken) this.#changed.delete(each);
    this.#othersChanged = false;
    return {
      network: { sandbox_id: this.#sandboxId, since: this.#since, ...this.#others },
      destinations: taken.map(({ key: _, first_ms, last_ms, ...rest }) => ({
        ...rest,
        sandbox_id: this.#sandboxId,
        first_at: at(first_ms),
        last_at: at(last_ms),
      })),
    };
  }

  /** The taken rows could not be written. */
  giveBack(destinations: readonly DestinationRow[]): void {
    this.#othersChanged = true;
    for (const row of destinations) {
      const current = this.#of(row.allowed).get(keyOf(row, row.reason));
      if (current) this.#changed.add(current);
    }
  }

  #of(allowed: boolean): Map<string, Destination> {
    return allowed ? this.#allowed : this.#refused;
  }

  #meet(endpoint: Where, reason: Denial["reason"] | null): Destination {
    const allowed = reason === null;
    const { host, ip, port } = endpoint;
    const key = keyOf(endpoint, reason);
    const known = this.#of(allowed).get(key);
    const destination: Destination = known ?? {
      ...{ key, allowed, slot: this.#makePlace(allowed), host, ip, port, reason },
      ...{ connections: 0, sent_bytes: 0, received_bytes: 0, first_ms: wallMs(), last_ms: 0 },
    };
    destination.connections++;
    // A name may have another address at each connection.
    destination.ip = ip;
    this.#touch(destination);
    return destination;
  }

  #touch(destination: Destination): void {
    const kind = this.#of(destination.allowed);
    kind.delete(destination.key);
    kind.set(destination.key, destination);
    destination.last_ms = wallMs();
    this.#changed.add(destination);
  }

  /** A free slot, or that of the least recently used destination if all are in use. */
  #makePlace(allowed: boolean): number {
    const kind = this.#of(allowed);
    if (kind.size < MAX_DESTINATIONS) return kind.size;
    const [oldest] = kind.values();
    if (!oldest) return 0;
    kind.delete(oldest.key);
    this.#changed.delete(oldest);
    this.#others[allowed ? "allowed" : "refused"] += oldest.connections;
    this.#othersChanged = true;
    return oldest.slot;
  }
}

/** A name is one destination, whatever its current address. */
function keyOf({ host, ip, port }: Where, reason: Denial["reason"] | null): string {
  return JSON.stringify([host ?? ip, port, reason]);
}
