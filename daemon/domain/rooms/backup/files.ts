/**
 * Working directories for writing and reading rooms' backup files: one each, outside of the rooms, removed together with the file.
 * Leftovers of a killed daemon are erased at the next start. An organization has few concurrently, since each may be as large as a drive.
 */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import type { OrgId } from "../../../../shared/ids.ts";
import { Mailbox } from "../../../core/concurrency/mailbox.ts";
import type { Paths } from "../../../core/config/paths.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import type { RoomDeps } from "../deps.ts";

const MAX_OF_ORG = 2;
const MAX_OF_HOST = 8;

export interface RoomFile {
  place: ReturnType<Paths["room_file"]>;
  /** Runs work that holds a room's state in memory, which may be large: one at a time over all rooms' backup files and organizations. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /** Again does nothing. */
  remove(): Promise<void>;
}

export class RoomFiles {
  readonly #deps: Pick<RoomDeps, "paths" | "giveUpSpace">;
  readonly #held = new Map<OrgId, number>();
  readonly #states = new Mailbox();

  constructor(deps: Pick<RoomDeps, "paths" | "giveUpSpace">) {
    this.#deps = deps;
  }

  /** Throws invalid_state if the organization, or the host, is at its limit. */
  async begin(orgId: OrgId): Promise<RoomFile> {
    const held = this.#held.get(orgId) ?? 0;
    const all = [...this.#held.values()].reduce((sum, each) => sum + each, 0);
    if (held >= MAX_OF_ORG) throw tooMany(`${held} files of the organization's rooms`);
    if (all >= MAX_OF_HOST) throw tooMany(`${all} files of rooms on this host`);
    this.#held.set(orgId, held + 1);
    const place = this.#deps.paths.room_file(crypto.randomUUID());
    let removal: Promise<void> | null = null;
    const remove = () => {
      removal ??= eraseDirectory(place.directory, this.#deps.giveUpSpace).finally(() => this.#end(orgId));
      return removal;
    };
    try {
      await mkdir(place.directory, { recursive: true, mode: 0o700 });
    } catch (error) {
      await remove().catch(() => {});
      throw error;
    }
    return { place, alone: (work) => this.#states.put(work), remove };
  }

  /** Before any is made. */
  async sweep(): Promise<void> {
    const { paths, giveUpSpace } = this.#deps;
    if (existsSync(paths.room_files)) await eraseDirectory(paths.room_files, giveUpSpace);
  }

  #end(orgId: OrgId): void {
    const left = (this.#held.get(orgId) ?? 1) - 1;
    if (left > 0) this.#held.set(orgId, left);
    else this.#held.delete(orgId);
  }
}

function tooMany(subject: string): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `${subject} are currently being written or read.`,
    hint: "Retry once one of them is done.",
  });
}
