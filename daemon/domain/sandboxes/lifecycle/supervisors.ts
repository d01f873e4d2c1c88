/** All supervisors of this host: one per sandbox that is not destroyed, and the deadlines of their sandboxes. */
import type { ExitCause, SandboxState } from "../../../../shared/api/sandboxes.ts";
import { newId, type RoomUid } from "../../../../shared/ids.ts";
import type { RoomTarget } from "../../../core/call/room-target.ts";
import { monotonicMs, startTimer, stopTimer } from "../../../core/clock.ts";
import { Deadlines } from "../../../core/concurrency/deadlines.ts";
import { onceATurn } from "../../../core/concurrency/next-turn.ts";
import { DeadlineError } from "../../../core/concurrency/published.ts";
import type { SandboxPaths } from "../../../core/config/paths.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { ownerOf } from "../../../core/loop/index.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { Confinement } from "../../../host/confine/confinement.ts";
import { type AdoptedAs, adoptGuest } from "../../../host/guest/adopt.ts";
import { endLeft, endProcesses, freeLeftovers } from "../../../host/guest/leftovers.ts";
import { type GuestImage, type GuestPlan, hostOfOrg, type StartPlan } from "../../../host/guest/plan.ts";
import type { WarmMachine } from "../../../host/guest/pool.ts";
import { type GuestRecord, readRecord } from "../../../host/guest/record.ts";
import { adoptSnapshot, imageOfDisk, type RestorePlan, restoreGuest } from "../../../host/guest/restore.ts";
import { snapshotSaved } from "../../../host/guest/save.ts";
import { type OnStarted, startGuest } from "../../../host/guest/start.ts";
import type { GuestRequests } from "../../../host/guest-link/handshake.ts";
import { boundLog, type ProcessRecord } from "../../../host/process.ts";
import { residentMemoryMib, usageOfProcess } from "../../../host/usage.ts";
import { cidAgain, FreeCids } from "../cids.ts";
import type { SandboxDeps } from "../deps.ts";
import { listOf } from "../egress-list.ts";
import { identityOf } from "../identity.ts";
import { placeOf } from "../metering.ts";
import { requireUnmoved } from "../move/unmoved.ts";
import type { SnapshotPlace, SnapshotPlaces } from "../snapshots/place.ts";
import { getSnapshot } from "../snapshots/store.ts";
import { SandboxStats } from "../stats.ts";
import { isCalled } from "../store.ts";
import type { SandboxRow } from "../table.ts";
import { Gate, type Growth } from "./admission.ts";
import { Idleness } from "./idleness.ts";
import { Quarantine } from "./quarantine.ts";
import { Supervisor } from "./supervisor.ts";

/** If sandboxes are always being started, the pool launches machines nevertheless after this time. */
const LONGEST_WAIT_MS = 10_000;

type SupervisedRoom = Pick<RoomTarget, "room_id" | "drive_directory" | "drive_limit_bytes">;

const HAVE_GUESTS: readonly SandboxState[] = ["starting", "running", "pausing", "paused", "hibernating", "resuming"];

export interface Supervisors {
  /** Supervises a sandbox; `warm` is the pooled machine reserved for it. */
  add(row: SandboxRow, room: SupervisedRoom, warm: WarmMachine | null): Supervisor;
  get(sandboxId: string): Supervisor | undefined;
  /** Destroys a sandbox without a call. If a process does not end, the reconciler retries. */
  endUnasked(sandboxId: string, cause: ExitCause): Promise<void>;
  /** Ends and removes everything on the host under this name, except its logs. Throws if anything remains. */
  freeRemains(sandboxId: string): Promise<void>;
  /** The same, except its disk and its saved state. */
  endLeft(sandboxId: string): Promise<void>;
  /** Drops a sandbox that was not created, or no longer exists. */
  drop(sandboxId: string): void;
  /** Runs `work` with the sandbox, which is not idle until it is done, however long it takes. */
  use<T>(sandboxId: string, work: () => Promise<T>): Promise<T>;
  /** Number of current uses of the sandbox. */
  usesOf(sandboxId: string): number;
  /** Blocks the creation of sandboxes in the room during `work`. */
  holding<T>(roomUid: RoomUid, work: () => Promise<T>): Promise<T>;
  /** Throws invalid_state if no sandbox may be created. */
  requireUnheld(roomUid: RoomUid): void;
  /** Sets the sandbox's deadlines again, after a change of its timeouts. */
  schedule(row: SandboxRow): void;
  /** The record of its guest's processes; null if absent. */
  recordOf(sandboxId: string): GuestRecord | null;
  /** Rooms that have guests. */
  guestRooms(): RoomUid[];
  /** The existing virtiofsd processes that serve the drive to the guests of a room. */
  sharesOf(roomUid: RoomUid): ProcessRecord[];
  /** Statistics of sandboxes since the daemon started. */
  outcomes: SandboxStats;
  cids: FreeCids;
  /** Host memory that the guests were promised and do not use yet. */
  growth(): Growth;
  /** Resolves when no sandbox is being started, or after a time limit. */
  whenNobodyStarts(): Promise<void>;
  /** Resumes guests that were paused because the disk was full. */
  unstall(): void;
  /** Empties logs of guests' processes that have grown too large. */
  boundLogs(): void;
  stop(): void;
}

export function makeSupervisors(
  deps: SandboxDeps,
  ends: {
    watch(sandboxId: string): void;
    /** Whether an execution may run in the sandbox. */
    hasAny(sandboxId: string): boolean;
  },
  places: SnapshotPlaces,
): Supervisors {
  const all = new Map<string, Supervisor>();
  /** The same by room: looked up every second for each room. */
  const ofRooms = new Map<RoomUid, Set<Supervisor>>();
  const outcomes = new SandboxStats();
  const adoptions = new Quarantine(deps, deps.crashed);
  const gate = new Gate(deps.limits.concurrent_creates);
  const expiries = new Deadlines((sandboxId) => void endUnasked(sandboxId, "expired"));
  const idleness = new Idleness({
    log: deps.log,
    onEvent: deps.onEvent,
    supervisorOf: (sandboxId) => all.get(sandboxId),
    isCalled: (row) => isCalled(deps.database.queries, row),
    activityOf: (sandboxId) => ({
      traffic_at: deps.egress.lastTrafficOf(sandboxId),
      cpu_seconds: ends.hasAny(sandboxId) ? cpuOf(all.get(sandboxId)) : null,
    }),
    end: (sandboxId) => endUnasked(sandboxId, "idle"),
  });

  const endUnasked = async (sandboxId: string, cause: ExitCause) => {
    const supervisor = all.get(sandboxId);
    if (!supervisor) return;
    try {
      await supervisor.destroy(cause);
      deps.onEvent("sandbox.destroyed", supervisor.row, { reason: cause }, "success");
    } catch (error) {
      deps.log.error("failed to destroy a sandbox", { sandbox_id: sandboxId, error: describeError(error) });
    }
  };

  const use = <T>(sandboxId: string, work: () => Promise<T>) => idleness.use(sandboxId, work);

  /** Rooms in which the creation of sandboxes is blocked. */
  const held = new Set<RoomUid>();

  const free = async (sandboxId: string, by = freeLeftovers) => {
    await by(deps.paths.sandbox(sandboxId));
    await confinementOf(deps)?.release(sandboxId);
  };

  /** A sandbox that is not adopted yet has processes as well. */
  const recordOf = (sandboxId: string) =>
    all.get(sandboxId)?.guest?.record() ?? readRecord(deps.paths.sandbox(sandboxId).processes);

  /** Cached per event-loop turn: the sum takes milliseconds with many sandboxes, and a turn may create many. */
  const residentNow = onceATurn(
    (): ReadonlyMap<string, number> =>
      new Map(
        [...all.values()].map(({ row: { sandbox_id }, guest }) => {
          const pid = guest?.machine.process.pid ?? recordOf(sandbox_id)?.qemu?.pid;
          return [sandbox_id, pid === undefined ? 0 : residentMemoryMib(pid)];
        }),
      ),
  );

  const drop = (sandboxId: string) => {
    const supervisor = all.get(sandboxId);
    if (supervisor) ofRooms.get(supervisor.row.room_uid)?.delete(supervisor);
    if (supervisor && ofRooms.get(supervisor.row.room_uid)?.size === 0) ofRooms.delete(supervisor.row.room_uid);
    all.delete(sandboxId);
    deps.egress.drop(sandboxId);
    expiries.set(sandboxId, null);
    idleness.forget(sandboxId);
  };

  const schedule = (row: SandboxRow) => {
    expiries.set(row.sandbox_id, row.expires_at);
    idleness.restart(row.sandbox_id);
  };

  /** The host with the template group of the sandbox's organization. */
  const hostOf = ({ org_id }: SandboxRow) => hostOfOrg(deps.host(), deps.templateGroups.numberOf(org_id));

  const planOf = (row: SandboxRow, room: SupervisedRoom): GuestPlan => ({
    sandbox_id: row.sandbox_id,
    guest_cid: row.guest_cid,
    paths: deps.paths.sandbox(row.sandbox_id),
    drive_directory: room.drive_directory,
    drive_limit_bytes: room.drive_limit_bytes,
    identity: identityOf(row, room.room_id),
    // The allowlist may have changed while the sandbox waited for its turn.
    requests: requestsOf(deps, row, room, listOf(all.get(row.sandbox_id)?.row ?? row)),
  });

  /** Shorter than the limit of the whole start, so that the error names the part that took too long. */
  const agentDeadlineMs = deps.startLimitMs * AGENT_SHARE;

  const startPlanOf = (row: SandboxRow, room: SupervisedRoom, image: GuestImage): StartPlan => ({
    ...planOf(row, room),
    memory_mib: row.memory_mib,
    vcpu_count: row.vcpu_count,
    image,
    agent_deadline_ms: agentDeadlineMs,
  });

  const restorePlanOf = (row: SandboxRow, room: SupervisedRoom): RestorePlan => {
    const { memory_mib, vcpu_count } = row;
    return { ...planOf(row, room), memory_mib, vcpu_count, agent_deadline_ms: agentDeadlineMs };
  };

  /** Starts a sandbox; until that is done, it is in use, as is its snapshot. */
  const withSource = <T>({ sandbox_id, snapshot_id }: SandboxRow, work: () => Promise<T>): Promise<T> =>
    use(sandbox_id, () => (snapshot_id === null ? work() : places.use(snapshot_id, work)));

  /** The source snapshot of a new sandbox. */
  const sourceFor = ({ snapshot_id }: SandboxRow): SnapshotPlace | null => {
    if (snapshot_id === null) return null;
    const snapshot = getSnapshot(deps.database.queries, snapshot_id);
    if (!snapshot) throw new Error(`snapshot ${snapshot_id} is gone`);
    return places.of(snapshot);
  };

  const restoreFrom = async (
    row: SandboxRow,
    room: SupervisedRoom,
    { files }: SnapshotPlace,
    onStarted: () => void,
    signal: AbortSignal,
  ) => {
    const plan = restorePlanOf(row, room);
    await adoptSnapshot(deps.host(), plan, files, "forked", row.sandbox_id);
    onStarted();
    return await restoreGuest(hostOf(row), plan, { startMode: "snapshot", onSpent: () => {} }, signal);
  };

  const imageFor = async (row: SandboxRow): Promise<GuestImage> => {
    const template = deps.templates.get(row.template_id, row.org_id);
    if (!template) throw new Error(`template ${row.template_id} is gone`);
    const { image, refused, isUnsaved } = await deps.templates.usable(template, row.vcpu_count);
    if (refused !== null) {
      const about = { template_id: row.template_id, vcpu_count: row.vcpu_count, reason: refused };
      deps.log[isUnsaved ? "info" : "warn"]("snapshot refused, booting cold", about);
    }
    return image;
  };

  return {
    add: (row, room, warm) => {
      const supervisor = new Supervisor(row, {
        database: deps.database,
        log: deps.log,
        meter: deps.meter,
        paths: deps.paths.sandbox(row.sandbox_id),
        start: (current, onStarted, signal) =>
          withSource(current, async () => {
            // Includes the time in the gate's queue.
            const time = new StartTime(deps.startLimitMs);
            const limit = AbortSignal.any([signal, time.up]);
            try {
              return await gate.through(
                current.org_id,
                async () => {
                  const from = sourceFor(current);
                  if (from?.mode === "full") return await restoreFrom(current, room, from, onStarted, limit);
                  const image = from ? await imageOfDisk(from.files) : (warm?.image ?? (await imageFor(current)));
                  const plan = startPlanOf(current, room, image);
                  const onMode: OnStarted = (mode) => {
                    if (mode === "cold") time.extend(plan.image.start_ms);
                    onStarted();
                  };
                  return await startGuest(hostOf(current), plan, warm?.launched ?? null, onMode, limit);
                },
                limit,
              );
            } catch (error) {
              if (warm) await endWarm(warm, deps.paths.sandbox(current.sandbox_id));
              throw limit.aborted ? limit.reason : error;
            } finally {
              time.end();
              deps.pool.refill();
            }
          }),
        adopt: async (current, signal) => {
          const mode = current.start_mode ?? "snapshot";
          const adopt = async () => {
            await faultPoint("sandbox.adopting");
            return await adoptGuest(
              () => hostOf(current),
              planOf(current, room),
              mode,
              adoptedAs(current.state),
              signal,
            );
          };
          return await adoptions.guard(current, adopt, signal);
        },
        restore: (current, signal) =>
          use(current.sandbox_id, () =>
            gate.through(
              current.org_id,
              async () => {
                const time = new StartTime(deps.startLimitMs);
                const limit = AbortSignal.any([signal, time.up]);
                // Once the guest continues, the restore itself is done: only the agent's deadline counts from then on.
                const how = { startMode: current.start_mode ?? "snapshot", onSpent: () => time.end() } as const;
                try {
                  return await restoreGuest(hostOf(current), restorePlanOf(current, room), how, limit);
                } catch (error) {
                  throw limit.aborted ? limit.reason : error;
                } finally {
                  time.end();
                }
              },
              signal,
            ),
          ),
        takeCid: (queries, current) => cidAgain(() => deps.host().transport, queries, current),
        snapshotSaved: ({ sandbox_id }, request) => {
          const uid = deps.host().isolation.usersOf(sandbox_id)?.qemu.uid ?? 0;
          return snapshotSaved(deps.paths.sandbox(sandbox_id), request, uid);
        },
        // A disk name that none of the layers has.
        adoptSnapshot: ({ sandbox_id }, { files }) =>
          adoptSnapshot(
            deps.host(),
            { sandbox_id, paths: deps.paths.sandbox(sandbox_id) },
            files,
            "rolled_back",
            newId("sbx"),
          ),
        requireUnmoved: (current) => requireUnmoved(deps, current),
        freeRemains: () => free(row.sandbox_id),
        endLeft: () => free(row.sandbox_id, endLeft),
        onEvent: deps.onEvent,
        onState: (current) => {
          idleness.restart(current.sandbox_id);
          if (current.state === "running") ends.watch(current.sandbox_id);
          outcomes.note(current);
          deps.onState(current);
        },
        onGone: (removed) => drop(removed.sandbox_id),
      });
      all.set(row.sandbox_id, supervisor);
      ofRooms.set(row.room_uid, (ofRooms.get(row.room_uid) ?? new Set()).add(supervisor));
      if (row.state === "running") ends.watch(row.sandbox_id);
      schedule(row);
      return supervisor;
    },
    get: (sandboxId) => all.get(sandboxId),
    endUnasked,
    freeRemains: free,
    endLeft: (sandboxId) => free(sandboxId, endLeft),
    drop,
    use,
    usesOf: (sandboxId) => idleness.usesOf(sandboxId),
    holding: async (roomUid, work) => {
      held.add(roomUid);
      try {
        return await work();
      } finally {
        held.delete(roomUid);
      }
    },
    requireUnheld: (roomUid) => {
      if (!held.has(roomUid)) return;
      throw new ServiceError("invalid_state", {
        detail: "The room is being checkpointed or restored: no sandbox can start in it now.",
        hint: "Retry once that is done.",
        retryAfterSeconds: 5,
      });
    },
    schedule,
    outcomes,
    cids: new FreeCids(),
    recordOf,
    guestRooms: () => [...ofRooms].filter(([, room]) => [...room].some(hasGuest)).map(([roomUid]) => roomUid),
    sharesOf: (roomUid) =>
      [...(ofRooms.get(roomUid) ?? [])]
        .filter(hasGuest)
        .flatMap(({ row: { sandbox_id } }) => recordOf(sandbox_id)?.virtiofsd ?? []),
    growth: () => ({
      overcommit_percent: deps.memoryOvercommitPercent,
      others_mib: deps.otherMemoryMib(),
      resident_mib: residentNow(),
    }),
    whenNobodyStarts: () => gate.whenEmpty(LONGEST_WAIT_MS),
    unstall: () => {
      for (const { guest, row } of all.values()) {
        if (!guest?.machine.stalled.value) continue;
        guest
          .changeRun((machine) => machine.unstall())
          .catch((error: unknown) => {
            deps.log.warn("failed to resume a guest", { sandbox_id: row.sandbox_id, error: String(error) });
          });
      }
    },
    boundLogs: () => {
      for (const { row } of all.values()) {
        if (!HAVE_GUESTS.includes(row.state) || !boundLog(deps.paths.sandbox(row.sandbox_id).vmm_log)) continue;
        deps.log.warn("truncated vmm.log, which was too large", { sandbox_id: row.sandbox_id });
      }
    },
    stop: () => {
      adoptions.stop();
      expiries.clear();
      idleness.stop();
    },
  };
}

const hasGuest = ({ row }: Supervisor) => HAVE_GUESTS.includes(row.state);

/** Routes the guest's requests: to its room if it is attached to it, else to the network. */
function requestsOf(
  deps: SandboxDeps,
  row: SandboxRow,
  { room_id }: SupervisedRoom,
  allowlist: readonly string[],
): GuestRequests {
  const outside = deps.egress.serve({ ...row, room_id, place: placeOf(row) }, allowlist);
  const inside = row.fabric_attached ? deps.roomCalls({ ...row, room_id }) : null;
  const requests: GuestRequests = (stream, request) => {
    if (inside && Object(request).method === "room_call") inside(stream, request as object);
    else outside(stream, request);
  };
  requests.owner = ownerOf(row.org_id);
  return requests;
}

/** Expected run state of a guest at adoption: an interrupted pause may have taken effect, an interrupted resume is repeated. */
function adoptedAs(state: SandboxState): AdoptedAs {
  if (state === "pausing") return "either";
  return state === "paused" ? "paused" : "running";
}

/** Null if the host lacks a requirement for guests: then none runs, and the next start removes leftovers. */
function confinementOf(deps: SandboxDeps): Confinement | null {
  try {
    return deps.host().confinement;
  } catch {
    return null;
  }
}

/** Ends a pooled machine that was taken and not used, even during its launch, whatever it waits for. */
async function endWarm(warm: WarmMachine, paths: SandboxPaths): Promise<void> {
  await endProcesses(paths);
  const launched = await warm.launched.catch(() => null);
  await launched?.end();
}

/** The agent's share of the time limit of a start; the rest is for the steps before it can connect. */
const AGENT_SHARE = 5 / 6;

/** Time limit of a start. A boot may need more time than known at its beginning: it starts the programs that the template has running. */
class StartTime {
  readonly #over = new AbortController();
  readonly #begun = monotonicMs();
  #ms: number;
  #timer: Timer;

  constructor(ms: number) {
    this.#ms = ms;
    this.#timer = this.#set();
  }

  /** Aborts with a human-readable reason. */
  get up(): AbortSignal {
    return this.#over.signal;
  }

  extend(ms: number): void {
    this.#ms += ms;
    this.end();
    this.#timer = this.#set();
  }

  end(): void {
    stopTimer(this.#timer);
  }

  #set(): Timer {
    const reason = new DeadlineError(`it was not ready within ${this.#ms / 1000} s`);
    const left = this.#begun + this.#ms - monotonicMs();
    return startTimer(() => this.#over.abort(reason), left).unref();
  }
}

function cpuOf(supervisor: Supervisor | undefined): number | null {
  const pid = supervisor?.guest?.machine.process.pid;
  try {
    return pid === undefined ? null : usageOfProcess(pid).cpu_seconds;
  } catch {
    // It has just ended.
    return null;
  }
}
