/** Paths of snapshots, and protection from deletion while they are in use. */
import type { Paths, SavedPaths } from "../../../core/config/paths.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { SnapshotRow } from "./table.ts";

/** A snapshot and the paths of its files. */
export type SnapshotPlace = Pick<SnapshotRow, "snapshot_id" | "mode"> & { files: SavedPaths };

export class SnapshotPlaces {
  readonly #paths: Pick<Paths, "snapshot">;
  /** Number of current uses of each snapshot. */
  readonly #users = new Map<string, number>();

  constructor(paths: Pick<Paths, "snapshot">) {
    this.#paths = paths;
  }

  of({ room_uid, snapshot_id, mode }: Pick<SnapshotRow, "room_uid" | "snapshot_id" | "mode">): SnapshotPlace {
    return { snapshot_id, mode, files: this.#paths.snapshot(room_uid, snapshot_id) };
  }

  /** Protects the snapshot from deletion until `work` is done. */
  async use<T>(snapshotId: string, work: () => Promise<T>): Promise<T> {
    this.#users.set(snapshotId, (this.#users.get(snapshotId) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const left = (this.#users.get(snapshotId) ?? 1) - 1;
      if (left > 0) this.#users.set(snapshotId, left);
      else this.#users.delete(snapshotId);
    }
  }

  isUsed(snapshotId: string): boolean {
    return this.#users.has(snapshotId);
  }

  /** Throws snapshot_in_use. */
  requireUnused(snapshotId: string): void {
    if (!this.isUsed(snapshotId)) return;
    throw new ServiceError("snapshot_in_use", {
      detail: "A sandbox is currently being created from the snapshot.",
      details: { used_by: ["a sandbox that is being created, forked or rolled back"] },
      hint: "Retry once that is done.",
      retryAfterSeconds: 5,
    });
  }
}
