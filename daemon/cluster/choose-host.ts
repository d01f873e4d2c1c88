/**
 * The host of a new room: of two random candidates, the one that has promised less of its memory. Loads are as old as the last beat of each
 * host, so the rooms that were placed on it since count as promises of their organization's usual size; and because hosts do not know of
 * each other's choices, none takes the least loaded host of all.
 */
import { ServiceError } from "../core/service-error.ts";
import type { Host, WantedPlace } from "./directory.ts";
import type { Load } from "./leases.ts";

export interface Candidate {
  host: Host;
  load: Load | null;
  /** The beat that reported the load. */
  beat: string | null;
}

export class HostChoice {
  readonly #chance: () => number;
  /** Memory of rooms that this host has placed on each host since that host's last known beat. */
  readonly #placed = new Map<string, { beat: string | null; mib: number }>();

  /** `chance` returns a number of at least 0 and less than 1. */
  constructor(chance: () => number = Math.random) {
    this.#chance = chance;
  }

  /**
   * `usualMib`: memory usually promised to the sandboxes of such a room. Throws validation_failed, insufficient_capacity, host_unreachable.
   */
  choose(candidates: readonly Candidate[], requested: WantedPlace, usualMib: number): Host {
    const open = openHosts(candidates, requested).map((candidate) => ({
      ...candidate,
      mib: this.#placedMib(candidate) + usualMib,
    }));
    const known = open.filter(({ load }) => load !== null);
    const roomy = known.filter(({ load, mib }) => load && load.memory_mib.promised + mib <= load.memory_mib.total);
    const [one, another] = this.#draw([roomy, known].find((some) => some.length > 0) ?? open);
    const chosen = another && shareOf(another) < shareOf(one) ? another : one;
    const { host, beat, mib } = chosen;
    this.#placed.set(host.host_id, { beat, mib });
    return host;
  }

  #placedMib({ host, beat }: Candidate): number {
    const placed = this.#placed.get(host.host_id);
    return placed?.beat === beat ? placed.mib : 0;
  }

  #draw<T>(from: readonly T[]): [T, T | undefined] {
    const left = [...from];
    const draw = () => left.splice(Math.floor(this.#chance() * left.length), 1)[0];
    return [draw() as T, draw()];
  }
}

/** Hosts on which the room may be placed; at least one. Throws otherwise. */
function openHosts(candidates: readonly Candidate[], { host: name, host_labels = {} }: WantedPlace): Candidate[] {
  const matching = candidates.filter(
    ({ host }) =>
      host.state !== "gone" &&
      (name === undefined || host.host_id === name) &&
      Object.entries(host_labels).every(([label, value]) => host.labels[label] === value),
  );
  if (matching.length === 0) throw noSuchHost(name === undefined ? "host_labels" : "host");
  const open = matching.filter(({ host }) => host.state === "active");
  if (open.length > 0) return open;
  if (matching.every(({ host }) => host.state === "unreachable")) {
    throw new ServiceError("host_unreachable", {
      detail: `${matching.map(({ host }) => host.host_id).join(", ")}: the lease has expired.`,
    });
  }
  throw new ServiceError("insufficient_capacity", {
    detail: `No room can be placed on ${matching.map(({ host }) => `${host.host_id} (${host.state})`).join(", ")} at present.`,
  });
}

/** Not retryable. */
export function noSuchHost(field: "host" | "host_labels" = "host"): ServiceError {
  const message = field === "host" ? "names no host of the service" : "no host of the service has these labels";
  return new ServiceError("validation_failed", {
    detail: field === "host" ? `host ${message}.` : `host_labels: ${message}.`,
    errors: [{ field, code: "unknown_host", message }],
    hint: "{{host_list}} lists them, with an administrator's key.",
  });
}

/** Share of the host's memory that is promised after adding `mib`. */
function shareOf({ load, mib }: Candidate & { mib: number }): number {
  return load ? (load.memory_mib.promised + mib) / Math.max(1, load.memory_mib.total) : mib;
}
