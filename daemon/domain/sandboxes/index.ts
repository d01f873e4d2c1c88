/** Sandboxes: real virtual machines in a room. Each has a supervisor; calls go through it or read its row. */

import { type ExitCause, SANDBOX_STATES, type SandboxState } from "../../../shared/api/sandboxes.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import type { Bound } from "../../core/call/operation.ts";
import type { Queries } from "../../db/client.ts";
import { makeAccess, type SandboxReach } from "./access.ts";
import { makeSandboxesBranch, type SandboxesBranch } from "./branch/index.ts";
import { makeCreate } from "./calls/create.ts";
import { makeDestroy } from "./calls/destroy.ts";
import { makeEgressCalls } from "./calls/egress.ts";
import { makeGet } from "./calls/get.ts";
import { makeHibernate } from "./calls/hibernate.ts";
import { makeList } from "./calls/list.ts";
import { makeLogs } from "./calls/logs.ts";
import { makeMetrics } from "./calls/metrics.ts";
import { makeResume } from "./calls/resume.ts";
import { makeStandby } from "./calls/standby.ts";
import { makeUpdate } from "./calls/update.ts";
import type { SandboxDeps } from "./deps.ts";
import { Completions } from "./executions/completion.ts";
import { makeExecutions } from "./executions/index.ts";
import { makeFiles } from "./files/index.ts";
import { freeMemoryMib, needOf } from "./lifecycle/admission.ts";
import { recover } from "./lifecycle/adopt-previous.ts";
import { hibernateAll, type Shutdown } from "./lifecycle/host-shutdown.ts";
import { HostStart } from "./lifecycle/host-start.ts";
import { QUARANTINED } from "./lifecycle/quarantine.ts";
import { reconcile } from "./lifecycle/reconcile.ts";
import { makeSupervisors, type Supervisors } from "./lifecycle/supervisors.ts";
import { Waking } from "./lifecycle/waking.ts";
import { makeMeasure } from "./measure.ts";
import { makeSandboxesMove, type SandboxesMove } from "./move/index.ts";
import { type Going, goingIn } from "./running-work.ts";
import { makeSnapshots } from "./snapshots/index.ts";
import { SnapshotPlaces } from "./snapshots/place.ts";
import type { SandboxStats } from "./stats.ts";
import { countLive, countStates, failedFor, heldCids, roomSandboxes, undestroyed } from "./store.ts";
import type { SandboxRow } from "./table.ts";

/** Agents of quarantined sandboxes. */
export const listQuarantined = (queries: Queries) => failedFor(queries, QUARANTINED);

export { makeAgentLookup } from "./agents.ts";
export { DEFAULT_TEMPLATE } from "./base-image.ts";
export type { CutSandbox, ForkedItem, SandboxesBranch } from "./branch/index.ts";
export { cursorAfterSandbox } from "./calls/list.ts";
export { endedLongAgo, endedWithRooms, forgetSandbox, isKept } from "./lifecycle/forget-destroyed.ts";
export { listHibernated } from "./lifecycle/host-shutdown.ts";
export { shutdownPlanOf } from "./lifecycle/shutdown-plan.ts";
export type { Measured } from "./measure.ts";
export { fitsAsked } from "./move/fits.ts";
export type { FitsAnswer, FitsAsked, MovedSandboxes, Putting, SandboxesMove } from "./move/index.ts";
export type { Going } from "./running-work.ts";
export { locateSnapshot, snapshotBytes } from "./snapshots/store.ts";
export {
  heldInRoom,
  locateSandbox,
  NO_SANDBOXES,
  orgCids,
  orgSandboxes,
  sandboxesByOrg,
  sandboxesOfOrg,
} from "./store.ts";
export type { SandboxRow } from "./table.ts";

/** Running, or in transition to it. */
const RUNNING: readonly SandboxState[] = ["creating", "starting", "running", "resuming"];

export interface Sandboxes {
  operations: Bound[];
  access: SandboxReach;
  /**
   * Adopts the guests of the previous daemon, and ends guests that cannot be adopted; wakes sandboxes with unread messages that have not
   * woken them yet.
   */
  recover(answering: Promise<unknown>): Promise<void>;
  /** Called when a message is in the inbox of the sandbox's agent. */
  messageCame(sandboxId: string): void;
  /** Resolves once the sandboxes saved at the host's shutdown have resumed or failed to, or after a time limit. Call after `recover`. */
  returned(): Promise<void>;
  /** Number of them still to be awaited. */
  awaited(): number;
  /** Stops the resuming: the daemon is about to stop. */
  endReturn(): void;
  /**
   * Saves all sandboxes that have a guest, because the host is shut down; `spaceBytes`: bytes that may be added to the disk. No calls may
   * be served then.
   */
  hibernateAll(spaceBytes: number): Promise<Shutdown>;
  /** Repairs differences between the rows and the host. */
  reconcile(): Promise<void>;
  /** Destroys all sandboxes of a room; returns their agents. */
  destroyAll(roomUid: RoomUid): Promise<string[]>;
  /** Like `destroyAll`, because the room moves to another host; keeps their snapshots. */
  evacuate(roomUid: RoomUid): Promise<string[]>;
  forgetSnapshots(roomUid: RoomUid): Promise<void>;
  /** Transfer of sandboxes with a room to another host. */
  moves: SandboxesMove;
  /** Ends an organization's sandboxes except those in standby, without a call. */
  endRunning(orgId: OrgId, cause: ExitCause): Promise<void>;
  countLive(roomUid: RoomUid): number;
  /** Current activity in a room's sandboxes, without requests to their guests. */
  going(roomUid: RoomUid): Going;
  /** Capacity for further guests, and the host memory of existing ones. */
  capacity(): { memory_mib_free: number; memory_mib_resident: number; guest_cids_used: number };
  /** Whether there is memory for further guests of these sizes. */
  hasMemoryFor(memoryMib: readonly number[]): boolean;
  whenNobodyStarts: Supervisors["whenNobodyStarts"];
  /** Current resource use of sandboxes. */
  measure: ReturnType<typeof makeMeasure>;
  /** Number of sandboxes in each state, memory promised to sandboxes that have not ended, and statistics of outcomes. */
  figures(): { sandboxes: Record<string, number>; memory_mib: number; outcomes: SandboxStats };
  recordOf: Supervisors["recordOf"];
  /** Rooms that have guests, and the virtiofsd processes that serve the drive to each. */
  shares: Pick<Supervisors, "guestRooms" | "sharesOf">;
  /** Disk space is available: resumes guests that stalled because the disk was full. */
  unstall(): void;
  /** Truncates oversized logs of guests' processes: a guest can cause much output. */
  boundLogs(): void;
  /** Branching of sandboxes with their room. */
  branch: SandboxesBranch;
  /** Ends streams to callers: the daemon is about to stop. */
  endStreams(): void;
  stop(): void;
}

export function makeSandboxes(deps: SandboxDeps): Sandboxes {
  const ends = new Completions(deps, () => supervisors);
  const places = new SnapshotPlaces(deps.paths);
  const supervisors = makeSupervisors(deps, ends, places);
  const snapshots = makeSnapshots(deps, supervisors, places, ends);
  const waking = new Waking(deps, supervisors);
  const executions = makeExecutions(deps, supervisors, waking, ends);
  const files = makeFiles(deps, supervisors, waking);
  const { queries } = deps.database;
  const hostStart = new HostStart(deps, supervisors);
  const parts = { deps, supervisors, places, ends, waking };
  let returned = Promise.resolve();
  const endAll = async (
    roomUid: RoomUid,
    cause: ExitCause,
    rows: readonly SandboxRow[] = roomSandboxes(queries, roomUid),
  ): Promise<string[]> => {
    const room = deps.currentRoom(roomUid);
    // A sandbox that failed before the daemon was restarted has no supervisor, but still its logs.
    const supervised = rows.map((row) => supervisors.get(row.sandbox_id) ?? supervisors.add(row, room, null));
    const ended = await Promise.allSettled(supervised.map((supervisor) => supervisor.destroy(cause)));
    for (const outcome of ended) if (outcome.status === "rejected") throw outcome.reason;
    return rows.map((row) => row.agent_id);
  };
  return {
    operations: [
      makeCreate(deps, supervisors),
      ...makeList(deps),
      makeGet(deps, supervisors),
      makeUpdate(deps, supervisors),
      makeDestroy(deps, supervisors),
      makeStandby(deps, supervisors),
      makeHibernate(deps, supervisors),
      makeResume(deps, supervisors),
      makeLogs(deps),
      makeMetrics(deps, supervisors),
      ...makeEgressCalls(deps, supervisors),
      ...snapshots.operations,
      ...executions.operations,
      ...files.operations,
    ],
    access: makeAccess(deps, supervisors, waking),
    recover: async (answering) => {
      returned = hostStart.resume(await recover(deps, supervisors, answering));
      snapshots.recover(answering);
      void answering.then(() => waking.recover());
    },
    messageCame: (sandboxId) => waking.message(sandboxId),
    returned: () => returned,
    awaited: () => hostStart.awaited,
    endReturn: () => hostStart.stop(),
    hibernateAll: (spaceBytes) => hibernateAll(deps, supervisors, spaceBytes),
    reconcile: async () => {
      await reconcile(deps, supervisors);
      hostStart.again(undestroyed(queries));
    },
    destroyAll: async (roomUid) => {
      const agents = await endAll(roomUid, "user_requested");
      await snapshots.forgetRoom(roomUid);
      return agents;
    },
    evacuate: (roomUid) => endAll(roomUid, "host_evacuated"),
    forgetSnapshots: (roomUid) => snapshots.forgetRoom(roomUid),
    endRunning: async (orgId, cause) => {
      const running = undestroyed(queries).filter((row) => row.org_id === orgId && RUNNING.includes(row.state));
      await Promise.all(running.map(({ sandbox_id }) => supervisors.endUnasked(sandbox_id, cause)));
    },
    countLive: (roomUid) => countLive(queries, roomUid),
    going: (roomUid) => goingIn(roomSandboxes(queries, roomUid), ends),
    capacity: () => {
      const growth = supervisors.growth();
      return {
        memory_mib_free: freeMemoryMib(queries, growth),
        memory_mib_resident: [...growth.resident_mib.values()].reduce((sum, mib) => sum + mib, 0),
        guest_cids_used: heldCids(queries).size,
      };
    },
    hasMemoryFor: (memoryMib) => needOf(memoryMib) <= freeMemoryMib(queries, supervisors.growth()),
    whenNobodyStarts: () => supervisors.whenNobodyStarts(),
    measure: makeMeasure(deps, supervisors),
    figures: () => {
      const states = SANDBOX_STATES.filter((state) => state !== "destroyed");
      const counts = countStates(queries);
      const live = counts.filter(({ state }) => state !== "failed");
      return {
        sandboxes: Object.fromEntries(
          states.map((each) => [each, counts.find(({ state }) => state === each)?.held ?? 0]),
        ),
        memory_mib: live
          .filter(({ state }) => state !== "hibernated")
          .reduce((sum, { memory_mib }) => sum + memory_mib, 0),
        outcomes: supervisors.outcomes,
      };
    },
    recordOf: supervisors.recordOf,
    shares: supervisors,
    unstall: () => supervisors.unstall(),
    boundLogs: () => supervisors.boundLogs(),
    endStreams: () => {
      executions.stop();
      files.stop();
    },
    branch: makeSandboxesBranch(parts),
    moves: makeSandboxesMove({
      ...{ parts, hostStart, snapshots },
      end: async (rows) => {
        const [row] = rows;
        if (row) await endAll(row.room_uid, "host_evacuated", rows);
      },
    }),
    stop: () => {
      waking.stop();
      supervisors.stop();
      snapshots.stop();
    },
  };
}
