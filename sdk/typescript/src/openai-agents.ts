/**
 * Owns roomd as a sandbox client of the OpenAI Agents SDK: each session has a sandbox, in a room of its own or in one that is given. A
 * session's state names its sandbox, by which another process goes on with it.
 *
 * Not there, and refused as unsupported: mounts, host directories as path grants, and snapshot specs. A sandbox keeps its disk, memory
 * and processes by itself, also while it is hibernated; what is to outlive it goes to the room's drive. Commands that still run are not
 * found again by a session that is resumed: they go on, without its session IDs.
 */
import { randomInt } from "node:crypto";
import {
  cloneManifest,
  isNoopSnapshotSpec,
  Manifest,
  normalizeSandboxClientCreateArgs,
  type SandboxClient,
  type SandboxClientCreateArgs,
  SandboxConfigurationError,
  SandboxLifecycleError,
  SandboxUnsupportedFeatureError,
} from "@openai/agents-core/sandbox";
import {
  deserializeManifest,
  isRecord,
  readOptionalStringRecord,
  readString,
  rehydratePersistedEnvironmentForRuntime,
  serializeManifestRecord,
  serializeRuntimeEnvironmentForPersistence,
} from "@openai/agents-core/sandbox/internal";
import type { ClientOptions } from "./client.ts";
import { NotFoundError } from "./errors.ts";
import { RoomdSandboxSession, type RoomdSessionState, type SessionOptions } from "./openai-agents/session.ts";
import { requireSupported } from "./openai-agents/workspace.ts";
import type { Room } from "./room.ts";
import { Roomd } from "./roomd.ts";
import type { Sandbox } from "./sandbox.ts";
import { GRACE_SECONDS, type SandboxOptions, sandboxOptionsOf } from "./sandbox-create.ts";
import type { CallOptions } from "./transport.ts";

export type { RoomdSandboxSession, RoomdSessionState };

/** Of one session. `egress` says where its sandbox may connect to: as the host's `egress.default` has it if absent; `[]` is nowhere. */
export type RoomdSandboxOptions = Omit<SandboxOptions, keyof CallOptions> &
  SessionOptions & {
    /** The sandbox's name in the room; one that nobody has if absent. */
    agentId?: string;
  };

/** With `room` every sandbox is made in it; without, each has a room of its own, which ends with it. */
export type RoomdSandboxClientOptions = RoomdSandboxOptions & ClientOptions & { room?: Room };

/** By which the rooms and sandboxes are known that end with their session. */
const LABEL = { made_by: "openai-agents" };
const isOurs = ({ labels }: { labels: Record<string, string> }) => labels.made_by === LABEL.made_by;

export class RoomdSandboxClient implements SandboxClient<RoomdSandboxOptions, RoomdSessionState> {
  readonly backendId = "roomd";
  readonly #options: RoomdSandboxOptions & ClientOptions;
  readonly #room: Room | undefined;
  #roomd: Roomd | null = null;

  constructor({ room, ...options }: RoomdSandboxClientOptions = {}) {
    this.#options = options;
    this.#room = room;
  }

  async create(
    args?: SandboxClientCreateArgs<RoomdSandboxOptions> | Manifest,
    manifestOptions?: RoomdSandboxOptions,
  ): Promise<RoomdSandboxSession> {
    const { manifest, snapshot, options } = normalizeSandboxClientCreateArgs(args, manifestOptions);
    if (snapshot && !isNoopSnapshotSpec(snapshot)) {
      throw new SandboxUnsupportedFeatureError(
        `There are no ${snapshot.type} snapshots here: give the ID of a snapshot of the room as options.snapshot.`,
      );
    }
    requireSupported(manifest);
    const free = this.#room ? `agent-${randomInt(2 ** 47).toString(36)}` : "main";
    const { agentId = free, ...wanted } = { ...this.#options, ...options };
    const room = this.#room ?? (await this.#makeRoom(wanted.maxDurationSeconds));
    let sandbox: Sandbox | null = null;
    try {
      sandbox = await room.createSandbox(agentId, {
        ...sandboxOptionsOf(wanted),
        labels: { ...wanted.labels, ...LABEL },
      });
      return await this.#begin(sandbox, manifest, endOf(room, sandbox, this.#room === undefined), wanted);
    } catch (error) {
      await (this.#room ? sandbox?.destroy() : room.destroy({ drive: "delete" }))?.catch(() => {});
      throw error;
    }
  }

  /** A session in a sandbox that there is; whoever made the sandbox ends it. */
  async attach(sandbox: Sandbox, manifest: Manifest = new Manifest()): Promise<RoomdSandboxSession> {
    requireSupported(manifest);
    return this.#begin(sandbox, manifest, null, this.#options);
  }

  /** Goes on in the sandbox of a state. It ends with this session too, if it was made for one. */
  async resume(state: RoomdSessionState): Promise<RoomdSandboxSession> {
    const { roomId, agentId, sandboxId } = state;
    if (this.#room && this.#room.id !== roomId) {
      throw new SandboxConfigurationError(`The session is of room ${roomId}, not of ${this.#room.id}: give that room.`);
    }
    const room = this.#room ?? this.#opened().rooms.open(roomId);
    const sandbox = room.sandbox(agentId);
    // Who may end what is not for a state to say, which others may have written.
    const record = await sandbox.get().catch(unlessNotFound);
    if (record?.sandbox_id !== sandboxId) {
      throw new SandboxLifecycleError(`The session's sandbox ${sandboxId} is gone: create another session.`);
    }
    const hasRoom = this.#room === undefined && isOurs(await room.get());
    const end = hasRoom || isOurs(record) ? endOf(room, sandbox, hasRoom) : null;
    return new RoomdSandboxSession(sandbox, { ...state }, end, this.#options);
  }

  /** Ends the sandbox of a state, if it was made for a session. One that has ended is no error. */
  async delete(state: RoomdSessionState): Promise<void> {
    const session = await this.resume(state).catch((error: unknown) => {
      if (error instanceof SandboxLifecycleError) return null;
      throw error;
    });
    await session?.close();
  }

  /** A sandbox that ends with its run is nothing that another run could go on with. */
  canPersistOwnedSessionState(): boolean {
    return false;
  }

  async serializeSessionState({
    manifest,
    environment,
    ...state
  }: RoomdSessionState): Promise<Record<string, unknown>> {
    return {
      manifest: serializeManifestRecord(manifest),
      environment: serializeRuntimeEnvironmentForPersistence(manifest, environment),
      roomId: state.roomId,
      agentId: state.agentId,
      sandboxId: state.sandboxId,
    };
  }

  async deserializeSessionState(state: Record<string, unknown>): Promise<RoomdSessionState> {
    const manifest = deserializeManifest(isRecord(state.manifest) ? state.manifest : undefined);
    return {
      manifest,
      environment: await rehydratePersistedEnvironmentForRuntime(manifest, readOptionalStringRecord(state.environment)),
      roomId: readString(state, "roomId"),
      agentId: readString(state, "agentId"),
      sandboxId: readString(state, "sandboxId"),
    };
  }

  async #begin(
    sandbox: Sandbox,
    manifest: Manifest,
    end: (() => Promise<void>) | null,
    options: SessionOptions,
  ): Promise<RoomdSandboxSession> {
    const { roomId, agentId } = sandbox;
    const { sandbox_id: sandboxId } = await sandbox.get();
    const state = { manifest: cloneManifest(manifest), environment: {}, roomId, agentId, sandboxId };
    const session = new RoomdSandboxSession(sandbox, state, end, options);
    await session.applyManifest(manifest);
    return session;
  }

  #makeRoom(maxDurationSeconds: number | undefined): Promise<Room> {
    const ttl = maxDurationSeconds === undefined ? {} : { ttlSeconds: maxDurationSeconds + GRACE_SECONDS };
    return this.#opened().rooms.create({ labels: LABEL, ...ttl });
  }

  #opened(): Roomd {
    this.#roomd ??= new Roomd(this.#options);
    return this.#roomd;
  }
}

function endOf(room: Room, sandbox: Sandbox, hasRoom: boolean): () => Promise<void> {
  return () => (hasRoom ? room.destroy({ drive: "delete" }) : sandbox.destroy());
}

function unlessNotFound(error: unknown): null {
  if (error instanceof NotFoundError) return null;
  throw error;
}
