/** Recordings of all screens: those in progress, limits per room, and their metadata. */

import type { FileHandle } from "node:fs/promises";
import {
  DEFAULT_RECORDING_SECONDS,
  MAX_RECORDERS_OF_ORG,
  MAX_RECORDING_BYTES,
  MAX_RECORDINGS,
  MAX_RECORDINGS_BYTES,
  type RecordingEnd,
  type RecordingRecord,
} from "../../../../shared/api/recordings.ts";
import { newId, type OrgId } from "../../../../shared/ids.ts";
import type { KeyCall } from "../../../core/call/operation.ts";
import { now } from "../../../core/clock.ts";
import { ConcurrencyLimit } from "../../../core/concurrency/concurrency-limit.ts";
import { ownerOf } from "../../../core/loop/index.ts";
import { describeError, errnoOf, ServiceError } from "../../../core/service-error.ts";
import type { OpenFile } from "../../../host/files/open-file.ts";
import type { Allowance } from "../../../host/guest-link/pace.ts";
import { connect } from "../connect.ts";
import type { ScreenDeps, ScreenTarget } from "../deps.ts";
import { screenError } from "../errors.ts";
import { recordOf } from "../record.ts";
import { freshReads } from "../rfb/limits.ts";
import { Recorder } from "./recorder.ts";
import {
  beginFile,
  type FoundRecording,
  findFile,
  listFiles,
  openFile,
  removeFiles,
  type StoredRecording,
  writeKept,
} from "./store.ts";

const GIB = 1024 ** 3;

interface Live {
  kept: StoredRecording;
  recorder: Recorder;
  /** Resolves once the recording and its end record are on disk; never rejects. */
  settled: Promise<void>;
}

export class Recordings {
  readonly #deps: ScreenDeps;
  /** By sandbox; without a recorder while one is being opened. */
  readonly #live = new Map<string, { org_id: OrgId; live: Live | null }>();
  /** By organization, while one of its screens is recorded: a new recording does not reset the allowance. */
  readonly #reads = new Map<OrgId, Allowance>();
  readonly #ofOrgs = new ConcurrencyLimit(
    MAX_RECORDERS_OF_ORG,
    () =>
      new ServiceError("insufficient_capacity", {
        detail: `${MAX_RECORDERS_OF_ORG} screens are already being recorded.`,
      }),
  );

  constructor(deps: ScreenDeps) {
    this.#deps = deps;
  }

  /** Throws already_exists, insufficient_capacity, and the errors of connect. */
  async start(call: KeyCall, target: ScreenTarget, seconds = DEFAULT_RECORDING_SECONDS): Promise<RecordingRecord> {
    const { room, row } = target;
    if (this.#live.has(row.sandbox_id)) throw this.#isRecorded(row.sandbox_id);
    const giveBack = this.#ofOrgs.take(row.org_id);
    const leave = () => {
      giveBack();
      this.#live.delete(row.sandbox_id);
      if (![...this.#live.values()].some(({ org_id }) => org_id === row.org_id)) this.#reads.delete(row.org_id);
    };
    this.#live.set(row.sandbox_id, { org_id: row.org_id, live: null });
    try {
      await this.#requireSpace(target);
      const live = await this.#open(call, target, seconds * 1000);
      void live.settled.then(leave);
      return this.#shown(room.room_id, { ...live.kept, size_bytes: 0, changed_at: live.kept.started_at });
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** The newest first. */
  async list({ room, row }: ScreenTarget): Promise<RecordingRecord[]> {
    const all = await listFiles(this.#directory(room.room_uid));
    return all
      .filter(({ sandbox_id }) => sandbox_id === row.sandbox_id)
      .map((found) => this.#shown(room.room_id, found));
  }

  /** Throws recording_not_found. */
  async get(target: ScreenTarget, recordingId: string): Promise<RecordingRecord> {
    return this.#shown(target.room.room_id, await this.#find(target, recordingId));
  }

  /** The current file of a recording, and its record. Throws recording_not_found. */
  async open(target: ScreenTarget, recordingId: string): Promise<{ record: RecordingRecord; file: OpenFile }> {
    const record = await this.get(target, recordingId);
    try {
      return { record, file: openFile(this.#directory(target.room.room_uid), recordingId) };
    } catch (error) {
      // Deleted in the meantime.
      throw errnoOf(error) === "ENOENT" ? this.#none(target, recordingId) : error;
    }
  }

  /** Resolves once the recording is complete. Throws recording_not_found. */
  async stop(target: ScreenTarget, recordingId: string): Promise<RecordingRecord> {
    await this.#end(target, recordingId);
    return await this.get(target, recordingId);
  }

  /** Throws recording_not_found. */
  async remove(target: ScreenTarget, recordingId: string): Promise<void> {
    await this.#find(target, recordingId);
    await this.#end(target, recordingId);
    await removeFiles(this.#directory(target.room.room_uid), recordingId);
  }

  /** Ends all recordings; resolves once they are complete. */
  async close(): Promise<void> {
    const all = [...this.#live.values()].flatMap(({ live }) => live ?? []);
    for (const { recorder } of all) recorder.end("service_restarted");
    await Promise.all(all.map(({ settled }) => settled));
  }

  async #open(call: KeyCall, target: ScreenTarget, mostMs: number): Promise<Live> {
    const { room, row } = target;
    const directory = this.#directory(room.room_uid);
    const { agent_id, sandbox_id } = row;
    const size = { width: 0, height: 0 };
    let kept: StoredRecording = {
      recording_id: newId("rec"),
      agent_id,
      sandbox_id,
      started_at: now(),
      ...size,
      end: null,
    };
    const makeFile = async (size: { width: number; height: number }): Promise<FileHandle> => {
      kept = { ...kept, ...size };
      return await beginFile(directory, kept);
    };
    const port = await connect(this.#deps, call, { ...target, isLookedAt: true });
    const reads = this.#reads.get(row.org_id) ?? freshReads();
    this.#reads.set(row.org_id, reads);
    const { hasSpace } = this.#deps;
    const recorder = await Recorder.open(port, makeFile, { mostMs, hasSpace, reads, owner: ownerOf(row.org_id) }).catch(
      (error) => {
        throw screenError(error, agent_id, call.signal);
      },
    );
    const over = new AbortController();
    void this.#deps.sandboxes.stopped(sandbox_id, over.signal).then(() => recorder.end("sandbox_stopped"));
    const settled = recorder.over
      .then(async (reason) => {
        over.abort();
        const { duration_ms, size_bytes, width, height } = recorder;
        const end = { reason, at: now(), duration_ms };
        // Its room may be gone, or the disk full: its end is recorded in the audit anyway.
        const written = await Promise.allSettled([writeKept(directory, { ...kept, width, height, end })]);
        const details = { recording_id: kept.recording_id, end_reason: reason, size_bytes };
        await recordOf(this.#deps, call, "screen.recording_ended", details, duration_ms);
        if (written[0].status === "rejected" && errnoOf(written[0].reason) !== "ENOENT") throw written[0].reason;
      })
      .catch((error: unknown) =>
        this.#deps.log.error("failed to write the end of a recording", { sandbox_id, error: describeError(error) }),
      );
    const live = { kept, recorder, settled };
    this.#live.set(sandbox_id, { org_id: row.org_id, live });
    return live;
  }

  async #end({ row }: ScreenTarget, recordingId: string): Promise<void> {
    const live = this.#live.get(row.sandbox_id)?.live;
    if (live?.kept.recording_id !== recordingId) return;
    live.recorder.end("stopped");
    await live.settled;
  }

  async #find({ room, row }: ScreenTarget, recordingId: string): Promise<FoundRecording> {
    const found = await findFile(this.#directory(room.room_uid), recordingId);
    if (found?.sandbox_id !== row.sandbox_id) throw this.#none({ row }, recordingId);
    return found;
  }

  #none({ row }: Pick<ScreenTarget, "row">, recordingId: string): ServiceError {
    return new ServiceError("recording_not_found", {
      detail: `Sandbox ${row.agent_id} has no recording ${recordingId}.`,
    });
  }

  /** Throws insufficient_capacity. */
  async #requireSpace({ room, row: { org_id } }: ScreenTarget): Promise<void> {
    const hint = "Delete some of them first.";
    if ((await listFiles(this.#directory(room.room_uid))).length >= MAX_RECORDINGS) {
      const detail = `Room ${room.room_id} keeps ${MAX_RECORDINGS} recordings, which is the maximum.`;
      throw new ServiceError("insufficient_capacity", { detail, hint });
    }
    const going = [...this.#live.values()].flatMap((each) => (each.org_id === org_id ? [each.live?.kept] : []));
    let bytes = going.length * MAX_RECORDING_BYTES;
    for (const roomUid of this.#deps.roomsOf(org_id)) {
      for (const { recording_id, size_bytes } of await listFiles(this.#directory(roomUid))) {
        if (!going.some((kept) => kept?.recording_id === recording_id)) bytes += size_bytes;
      }
    }
    if (bytes <= MAX_RECORDINGS_BYTES) return;
    throw new ServiceError("insufficient_capacity", {
      detail: `The organization's recordings could total ${(bytes / GIB).toFixed(1)} GiB; it keeps ${MAX_RECORDINGS_BYTES / GIB} GiB.`,
      hint,
    });
  }

  #isRecorded(sandboxId: string): ServiceError {
    const recording_id = this.#live.get(sandboxId)?.live?.kept.recording_id;
    return new ServiceError("already_exists", {
      detail: `The screen is already being recorded${recording_id === undefined ? "" : `, as ${recording_id}`}.`,
      ...(recording_id === undefined ? {} : { details: { recording_id } }),
      hint: "Stop that recording first.",
    });
  }

  #shown(room_id: string, { end, changed_at, size_bytes, ...kept }: FoundRecording): RecordingRecord {
    const live = this.#live.get(kept.sandbox_id)?.live;
    if (live?.kept.recording_id === kept.recording_id) {
      const { width, height, duration_ms, size_bytes } = live.recorder;
      return {
        ...kept,
        room_id,
        state: "recording",
        end_reason: null,
        ended_at: null,
        duration_ms,
        size_bytes,
        width,
        height,
      };
    }
    // A recording without a stored end was cut off by the end of the daemon.
    const cut = {
      reason: "service_restarted" as RecordingEnd,
      at: changed_at,
      duration_ms: lengthOf(kept.started_at, changed_at),
    };
    const { reason, at, duration_ms } = end ?? cut;
    return { ...kept, room_id, state: "ended", end_reason: reason, ended_at: at, duration_ms, size_bytes };
  }

  #directory(roomUid: string): string {
    return this.#deps.paths.recordings(roomUid);
  }
}

const lengthOf = (from: string, to: string) => Math.max(0, Date.parse(to) - Date.parse(from));
