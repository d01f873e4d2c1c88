/**
 * roomd as a sandbox client of the OpenAI Agents SDK: each session has a sandbox, in its own room or in a given one. A session's state
 * names its sandbox, so that another process can resume it.
 *
 * Not supported, and refused: mounts, host directories as path grants, and snapshot specs. A sandbox keeps its disk, memory and processes
 * without them, also while it is hibernated; files that are to outlive it belong on the room's drive. A resumed session does not find
 * commands that are still running: they keep running, without its session IDs.
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

/** Options of a session. `egress`: permitted destinations of its sandbox; the host's `egress.default` if absent, none if `[]`. */
export type RoomdSandboxOptions = Omit<SandboxOptions, keyof CallOptions> &
  SessionOptions & {
    /** The sandbox's name in the room; a generated one if absent. */
    agentId?: string;
  };

/** With `room`, every sandbox is created in it; without, each has its own room, which is destroyed with it. */
export type RoomdSandboxClientOptions = RoomdSandboxOptions & ClientOptions & { room?: Room };

/** Label of rooms and sandboxes that end with their session. */
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
        `Snapshots of type ${snapshot.type} are not supported: give the ID of a snapshot of the room as options.snapshot.`,
      );
    }
    requireSupported(manifest);
    const free = this.#room ? `agent-${randomInt(2 ** 47).toString(36)}` : "main";
    const { agentId = free, ...sandboxOptions } = { ...this.#options, ...options };
    const room = this.#room ?? (await this.#makeRoom(sandboxOptions.maxDurationSeconds));
    let sandbox: Sandbox | null = null;
    try {
      sandbox = await room.createSandbox(agentId, {
        ...sandboxOptionsOf(sandboxOptions),
        labels: { ...sandboxOptions.labels, ...LABEL },
      });
      return await this.#begin(sandbox, manifest, endOf(room, sandbox, this.#room === undefined), sandboxOptions);
    } catch (error) {
      await (this.#room ? sandbox?.destroy() : room.destroy({ drive: "delete" }))?.catch(() => {});
      throw error;
    }
  }

  /** A session in an existing sandbox; the sandbox's creator has to destroy it. */
  async attach(sandbox: Sandbox, manifest: Manifest = new Manifest()): Promise<RoomdSandboxSession> {
    requireSupported(manifest);
    return this.#begin(sandbox, manifest, null, this.#options);
  }

  /** Resumes the session in the sandbox of a state. The sandbox is destroyed with this session too, if it was created for one. */
  async resume(state: RoomdSessionState): Promise<RoomdSandboxSession> {
    const { roomId, agentId, sandboxId } = state;
    if (this.#room && this.#room.id !== roomId) {
      throw new SandboxConfigurationError(`The session is of room ${roomId}, not of ${this.#room.id}: give that room.`);
    }
    const room = this.#room ?? this.#opened().rooms.open(roomId);
    const sandbox = room.sandbox(agentId);
    // A state is untrusted, so it does not decide which sandboxes may be destroyed.
    const record = await sandbox.get().catch(unlessNotFound);
    if (record?.sandbox_id !== sandboxId) {
      throw new SandboxLifecycleError(`The session's sandbox ${sandboxId} is gone: create another session.`);
    }
    const hasRoom = this.#room === undefined && isOurs(await room.get());
    const end = hasRoom || isOurs(record) ? endOf(room, sandbox, hasRoom) : null;
    return new RoomdSandboxSession(sandbox, { ...state }, end, this.#options);
  }

  /** Destroys the sandbox of a state, if it was created for a session. No error if it is already gone. */
  async delete(state: RoomdSessionState): Promise<void> {
    const session = await this.resume(state).catch((error: unknown) => {
      if (error instanceof SandboxLifecycleError) return null;
      throw error;
    });
    await session?.close();
  }

  /** A sandbox that ends with its run cannot be continued by another run. */
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
