/**
 * Limit of bytes for the drives of one backup file while they are made: each within a drive's limit, and all together within the space that
 * the organization's plan and the disk have left. The sizes that the file declares are untrusted.
 */
import { ServiceError } from "../../../core/service-error.ts";
import type { Bounds } from "../../../host/files/drive-store.ts";
import type { SandboxesBranch } from "../../sandboxes/index.ts";
import type { RoomRow } from "../table.ts";

export class Allowance {
  readonly #space: Pick<SandboxesBranch, "bytesLeft" | "requireBytes">;
  readonly #room: Pick<RoomRow, "org_id">;
  readonly #each: Bounds;
  #taken = 0;

  constructor(space: Pick<SandboxesBranch, "bytesLeft" | "requireBytes">, room: Pick<RoomRow, "org_id">, each: Bounds) {
    this.#space = space;
    this.#room = room;
    this.#each = each;
  }

  /** Makes a drive within the space left now. Throws quota_exceeded or disk_full if that is the limit that it exceeds. */
  async within<T>(make: (bounds: Bounds) => Promise<T>): Promise<T> {
    const left = await this.#space.bytesLeft(this.#room, this.#taken);
    const { bytes, entries } = this.#each;
    try {
      return await make({ bytes: Math.min(bytes, left), entries });
    } catch (error) {
      const isShort = left < bytes && error instanceof ServiceError && error.code === "drive_full";
      if (isShort) await this.#space.requireBytes(this.#room, { added: this.#taken + left + 1 });
      throw error;
    }
  }

  /** Counts a completed drive that remains. Throws quota_exceeded, disk_full. */
  async take(bytes: number): Promise<void> {
    this.#taken += bytes;
    await this.#space.requireBytes(this.#room, { added: this.#taken });
  }
}
