/**
 * Messages between two hosts about a room's guests before a move: the platforms on which these were saved, and whether the other host can
 * load them.
 */
import { type Static, Type } from "@sinclair/typebox";
import type { RoomUid, SandboxId, SnapshotId } from "../../../../shared/ids.ts";
import { runsOn, type SavedOn, savedOn, whyUnfit } from "../../../host/guest/transfer.ts";
import { templateFiles } from "../../templates/files.ts";
import type { SandboxDeps } from "../deps.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { SnapshotPlaces } from "../snapshots/place.ts";
import { roomSnapshots } from "../snapshots/store.ts";
import { roomSandboxes } from "../store.ts";

const word = Type.String({ maxLength: 256 });
const machine = Type.Object({
  qemu_version: word,
  processor: word,
  vsock: Type.Union([Type.Literal("kernel"), Type.Null()]),
  acceleration: Type.Union([Type.Literal("kvm"), Type.Literal("tcg")]),
  agent_generation: Type.Integer(),
});

/** Digests of templates' files, and machines, for a check by the destination. */
export const fitsAsked = Type.Object({
  files: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 10_000 }),
  machines: Type.Array(machine, { maxItems: 10_000 }),
});
export type FitsAsked = Static<typeof fitsAsked>;

/** The missing files, and for each machine the reason that it cannot be loaded; null if it can. */
export interface FitsAnswer {
  missing: string[];
  refused: (string | null)[];
}

/** A saved or running machine of a room that the other host has to load. */
export interface Loaded {
  id: SandboxId | SnapshotId;
  on: SavedOn;
}

type FitParts = { deps: SandboxDeps; supervisors: Pick<Supervisors, "get">; places: Pick<SnapshotPlaces, "of"> };

export async function loadedOf({ deps, supervisors, places }: FitParts, roomUid: RoomUid): Promise<Loaded[]> {
  const { queries } = deps.database;
  const found: Loaded[] = [];
  const add = async (id: Loaded["id"], look: Promise<SavedOn | null> | undefined) => {
    // If this fails because the sandbox is ending or in a transition, it is determined when it is saved.
    const on = await look?.catch(() => null);
    if (on) found.push({ id, on });
  };
  for (const row of roomSnapshots(queries, roomUid)) await add(row.snapshot_id, savedOn(places.of(row).files));
  for (const { sandbox_id, state } of roomSandboxes(queries, roomUid)) {
    const guest = supervisors.get(sandbox_id)?.guest;
    if (guest) await add(sandbox_id, runsOn(guest));
    else if (state === "hibernated") await add(sandbox_id, savedOn(deps.paths.sandbox(sandbox_id)));
  }
  return found;
}

/** This host's answer to another host. */
export async function fitsHere(deps: SandboxDeps, { files, machines }: FitsAsked): Promise<FitsAnswer> {
  const known = await templateFiles(deps.paths);
  return {
    missing: files.filter((digest) => !known.has(digest)),
    refused: machines.map((on) => whyUnfit(on, deps.here(), deps.host)),
  };
}
