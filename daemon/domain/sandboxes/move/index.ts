/** Transfer of sandboxes with their room to another host: saved on this one, placed and resumed on the other. */
import { rename } from "node:fs/promises";
import { join } from "node:path";
import type { RoomUid, SandboxId } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import { namesIn } from "../../../host/files/gone.ts";
import { synced } from "../../../host/files/synced.ts";
import { ownSaved } from "../../../host/guest/transfer.ts";
import { makeGuestDirectories } from "../../../host/isolation/directories.ts";
import type { BranchParts } from "../branch/parts.ts";
import type { SandboxDeps } from "../deps.ts";
import { takeUp } from "../lifecycle/adopt-previous.ts";
import type { HostStart } from "../lifecycle/host-start.ts";
import type { Snapshots } from "../snapshots/index.ts";
import { roomSandboxes } from "../store.ts";
import type { SandboxRow } from "../table.ts";
import { type FitsAnswer, type FitsAsked, fitsHere, type Loaded, loadedOf } from "./fits.ts";
import { type Leaving, leave, requireSpaceToSave } from "./leave.ts";
import { type MovedSandboxes, type Putting, putSandboxes, takeSandboxes, type Whose } from "./rows.ts";

export type { FitsAnswer, FitsAsked } from "./fits.ts";
export type { MovedSandboxes, Putting } from "./rows.ts";

export interface SandboxesMove {
  /** Machines of a room that another host would have to load. Throws disk_full if they cannot be saved. */
  loaded(roomUid: RoomUid): Promise<Loaded[]>;
  /** This host's answer to another host: whether it could load them. */
  fits(request: FitsAsked): Promise<FitsAnswer>;
  /** Hibernates or ends all sandboxes. Throws invalid_state; the caller then calls `stays`. */
  leave(roomUid: RoomUid, how: Leaving): Promise<{ carried: SandboxId[]; ended: string[] }>;
  /** Resumes the sandboxes saved for the move. */
  stays(roomUid: RoomUid): void;
  /** Within a transaction. */
  take(queries: Queries, roomUid: RoomUid): MovedSandboxes;
  /** Throws invalid_state if a part belongs to another room. */
  put(queries: Queries, owner: Whose, moved: MovedSandboxes, putting: Putting): void;
  /**
   * Moves the received files, a directory per sandbox, to the sandboxes' directories; resolves with the failures. A repeated call completes
   * the rest.
   */
  place(directory: string): Promise<ReadonlyMap<SandboxId, unknown>>;
  /** Called when the sandboxes' rows are written: resumes them. */
  came(roomUid: RoomUid): void;
}

interface Needs {
  parts: BranchParts;
  hostStart: Pick<HostStart, "again">;
  snapshots: Pick<Snapshots, "schedule">;
  end(rows: readonly SandboxRow[]): Promise<void>;
}

export function makeSandboxesMove({ parts, hostStart, snapshots, end }: Needs): SandboxesMove {
  const { deps, supervisors } = parts;
  const { queries } = deps.database;
  return {
    loaded: (roomUid) => {
      requireSpaceToSave(parts, roomUid);
      return loadedOf(parts, roomUid);
    },
    fits: (request) => fitsHere(deps, request),
    leave: (roomUid, how) => leave(parts, roomUid, how, end),
    stays: (roomUid) => hostStart.again(roomSandboxes(queries, roomUid)),
    take: takeSandboxes,
    put: (within, owner, moved, putting) => putSandboxes(within, owner, moved, putting),
    place: async (directory) => {
      const failed = new Map<SandboxId, unknown>();
      for (const name of (await namesIn(directory)) as SandboxId[])
        await placeOne(deps, join(directory, name), name).catch((error: unknown) => failed.set(name, error));
      await synced(deps.paths.sandboxes);
      return failed;
    },
    came: (roomUid) => {
      const rows = roomSandboxes(queries, roomUid);
      for (const row of rows) if (!supervisors.get(row.sandbox_id)) takeUp(deps, supervisors, row);
      snapshots.schedule();
      hostStart.again(rows);
    },
  };
}

async function placeOne(deps: SandboxDeps, from: string, name: SandboxId): Promise<void> {
  const paths = deps.paths.sandbox(name);
  const users = deps.host().isolation.usersOf(name);
  await makeGuestDirectories(paths, users);
  // The source directory itself stays until the row exists: until then it protects the sandbox from removal as a leftover.
  for (const file of await namesIn(from)) await rename(join(from, file), join(paths.directory, file));
  await ownSaved(paths, users?.qemu.uid ?? 0);
  await synced(paths.directory);
}
