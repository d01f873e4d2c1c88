/** Owns a sandbox: a virtual machine that serves one agent of a room. */
import { Agent } from "./agent.ts";
import { Calls } from "./calls.ts";
import { Client, type ClientOptions } from "./client.ts";
import { ConnectionError, NotFoundError, ProblemError, RoomdError } from "./errors.ts";
import { type Command, type CommandOptions, type CommandResult, Execution, type SandboxName } from "./execution.ts";
import { Files } from "./files.ts";
import type {
  ExposedPort,
  Fork,
  RoomCreateRequest,
  SandboxCreateRequest,
  Sandbox as SandboxRecord,
  Snapshot,
  TerminalCreateRequest,
} from "./generated/schemas.ts";
import { roomNameOf } from "./names.ts";
import { Terminal } from "./terminal.ts";
import type { CallOptions } from "./transport.ts";

export interface SandboxOptions extends CallOptions {
  /** "default" if absent. */
  template?: string;
  /** A snapshot of the room, in place of a template. */
  snapshot?: string;
  /** What the template says if absent. */
  memoryMib?: number;
  vcpus?: number;
  env?: Record<string, string>;
  /** Where it may connect to, such as "packages.example.com:443"; "*" is every public address. */
  egress?: readonly string[];
  labels?: Record<string, string>;
  /** It ends after this time without a call that uses it. */
  idleTimeoutSeconds?: number;
  maxDurationSeconds?: number;
  lifecycle?: SandboxCreateRequest["lifecycle"];
  /** A free one if absent. */
  guestCid?: number;
}

/** A room that was made for one sandbox outlives it so long, and is not there for ever where nobody ends it. */
export const GRACE_SECONDS = 3600;
/** How long to try to end what nobody waits for any more. */
const ENDING_MS = 30_000;
/** The longest that one call waits for one that is still starting. */
const WAIT_MS = 50_000;
const IS_STARTING: readonly SandboxRecord["state"][] = ["creating", "starting"];
const IS_OVER: readonly SandboxRecord["state"][] = ["failed", "destroying", "destroyed"];

export class Sandbox {
  /** The agent that it serves, by which it is named in its room. */
  readonly agentId: string;
  readonly roomId: string;
  readonly agent: Agent;
  /** Of its own disk. */
  readonly files: Files;
  readonly #client: Client;
  readonly #name: SandboxName;
  /** Of a sandbox that has its room to itself. */
  #ends: ((options: CallOptions) => Promise<void>) | null = null;

  constructor(client: Client, roomId: string, agentId: string) {
    this.roomId = roomId;
    this.agentId = agentId;
    this.agent = Agent.of(client, roomId, agentId);
    this.#client = client;
    this.#name = { room_id: roomId, sandbox: agentId };
    this.files = new Files(client, this.#name);
  }

  /** A sandbox for who wants no room: it gets one of its own, which ends with it. */
  static async create(options: SandboxOptions & ClientOptions = {}): Promise<Sandbox> {
    const client = new Client(options);
    const calls = new Calls(options);
    const { maxDurationSeconds } = options;
    const wanted = maxDurationSeconds === undefined ? {} : { ttl_seconds: maxDurationSeconds + GRACE_SECONDS };
    // Known before it is made: it may be made, and its answer lost.
    const room_id = roomNameOf(options.idempotencyKey);
    let mayBe = true;
    const end = async (ending: CallOptions = {}) => {
      try {
        if (mayBe) await client.call("room_destroy", { room_id, drive: "delete" }, ending);
      } finally {
        client.close();
      }
    };
    try {
      await createRoom(client, { room_id, ...wanted }, calls.next()).catch((error: unknown) => {
        mayBe = !isUndone(error);
        throw error;
      });
      const made = await Sandbox.#made(client, room_id, "main", options, calls);
      made.#ends = end;
      return made;
    } catch (error) {
      await end({ timeoutMs: ENDING_MS }).catch(() => {});
      throw error;
    }
  }

  /** Creates one in a room, and waits until it runs commands. */
  static async createIn(
    client: Client,
    roomId: string,
    agentId: string,
    options: SandboxOptions = {},
  ): Promise<Sandbox> {
    return Sandbox.#made(client, roomId, agentId, options, new Calls(options));
  }

  static async #made(
    client: Client,
    roomId: string,
    agentId: string,
    options: SandboxOptions,
    calls: Calls,
  ): Promise<Sandbox> {
    const wanted = { room_id: roomId, ...wantedOf(agentId, options) };
    const record = await client.call("sandbox_create", wanted, calls.next());
    await untilStarted(client, record, calls);
    return new Sandbox(client, roomId, agentId);
  }

  get(options: CallOptions = {}): Promise<SandboxRecord> {
    return this.#client.call("sandbox_get", this.#name, options);
  }

  /**
   * Runs a command and waits for its end; it is killed after `commandTimeoutMs`, 10 minutes if absent. A command that fails is no error: look
   * at `exitCode`.
   */
  exec(command: Command, options: CommandOptions = {}): Promise<CommandResult> {
    return Execution.run(this.#client, this.#name, command, options);
  }

  /** Begins a command and leaves it running; its standard input stays open until it is ended. */
  start(command: Command, options: CommandOptions = {}): Promise<Execution> {
    return Execution.start(this.#client, this.#name, command, options);
  }

  /** A command that was begun before, by its name. */
  execution(id: string): Execution {
    return new Execution(this.#client, this.#name, id);
  }

  /** A login shell of 80 by 24 if nothing else is wanted. */
  async openTerminal(wanted: Partial<TerminalCreateRequest> = {}, options: CallOptions = {}): Promise<Terminal> {
    const input = { ...this.#name, rows: 24, cols: 80, ...wanted };
    const { terminal_id } = await this.#client.call("terminal_create", input, options);
    return new Terminal(this.#client, this.#name, terminal_id);
  }

  terminal(id: string): Terminal {
    return new Terminal(this.#client, this.#name, id);
  }

  /** Makes a server in the sandbox reachable by URL; again: the same. */
  exposePort(
    port: number,
    { visibility, ...options }: CallOptions & { visibility?: "private" | "public" } = {},
  ): Promise<ExposedPort> {
    const input = { ...this.#name, port, ...(visibility === undefined ? {} : { visibility }) };
    return this.#client.call("sandbox_expose_port", input, options);
  }

  /** Keeps what it is at this moment, while it goes on. */
  snapshot({
    name,
    mode,
    ...options
  }: CallOptions & { name?: string; mode?: "full" | "disk" } = {}): Promise<Snapshot> {
    const input = {
      ...this.#name,
      ...(name === undefined ? {} : { name }),
      ...(mode === undefined ? {} : { mode }),
    };
    return this.#client.call("sandbox_snapshot", input, options);
  }

  /** Makes copies that go on where it is: one for each agent, or what was in its way. */
  async fork(agents: readonly string[], options: CallOptions = {}): Promise<Fork[]> {
    const wanted = agents.map((agent_id) => ({ agent_id }));
    return (await this.#client.call("sandbox_fork", { ...this.#name, agents: wanted }, options)).items;
  }

  /** Turns it back to a snapshot. */
  rollback(snapshotId: string, options: CallOptions = {}): Promise<SandboxRecord> {
    return this.#client.call("sandbox_rollback", { ...this.#name, snapshot_id: snapshotId }, options);
  }

  /** Pauses it in memory. */
  standby(options: CallOptions = {}): Promise<SandboxRecord> {
    return this.#client.call("sandbox_standby", this.#name, options);
  }

  /** Puts it to sleep on disk. */
  hibernate(options: CallOptions = {}): Promise<SandboxRecord> {
    return this.#client.call("sandbox_hibernate", this.#name, options);
  }

  resume(options: CallOptions = {}): Promise<SandboxRecord> {
    return this.#client.call("sandbox_resume", this.#name, options);
  }

  /** Ends it, and the room that it has to itself. One that has ended is no error. */
  async destroy(options: CallOptions = {}): Promise<void> {
    const ends = this.#ends ?? ((ending) => this.#client.call("sandbox_destroy", this.#name, ending));
    await unlessGone(() => ends(options));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.destroy();
  }
}

/** Does away with something; that it is gone already is as good. */
export async function unlessGone(end: () => Promise<unknown>): Promise<void> {
  await end().catch((error: unknown) => {
    if (!(error instanceof NotFoundError)) throw error;
  });
}

/** Whether it says that a call was refused, or came to no service. */
function isUndone(error: unknown): boolean {
  if (error instanceof ConnectionError) return error.fault === "unreachable" || error.fault === "untrusted";
  return error instanceof ProblemError;
}

/** The service answers also while one is still starting. Throws what became of it where it does not come up. */
async function untilStarted(client: Client, created: SandboxRecord, calls: Calls): Promise<void> {
  const { room_id, sandbox_id } = created;
  let record = created;
  while (IS_STARTING.includes(record.state)) {
    const wait_ms = Math.round(Math.min(WAIT_MS, calls.leftMs));
    record = await client.call("sandbox_get", { room_id, sandbox: sandbox_id, wait_ms }, calls.next());
  }
  const { state, status } = record;
  if (IS_OVER.includes(state)) throw new RoomdError(`The sandbox is ${state}: ${status.message}`);
}

/** A room, of a name that nobody has if none is given. */
export function createRoom(client: Client, wanted: Partial<RoomCreateRequest> = {}, options: CallOptions = {}) {
  return client.call("room_create", { room_id: roomNameOf(options.idempotencyKey), ...wanted }, options);
}

function wantedOf(agent_id: string, options: SandboxOptions): SandboxCreateRequest {
  const {
    template,
    snapshot,
    memoryMib,
    vcpus,
    env,
    egress,
    labels,
    idleTimeoutSeconds,
    maxDurationSeconds,
    lifecycle,
    guestCid,
  } = options;
  return {
    agent_id,
    ...(template === undefined ? {} : { template_id: template }),
    ...(snapshot === undefined ? {} : { snapshot_id: snapshot }),
    ...(memoryMib === undefined ? {} : { memory_mib: memoryMib }),
    ...(vcpus === undefined ? {} : { vcpu_count: vcpus }),
    ...(env === undefined ? {} : { env }),
    ...(egress === undefined ? {} : { egress_allowlist: [...egress] }),
    ...(labels === undefined ? {} : { labels }),
    ...(idleTimeoutSeconds === undefined ? {} : { idle_timeout_seconds: idleTimeoutSeconds }),
    ...(maxDurationSeconds === undefined ? {} : { max_duration_seconds: maxDurationSeconds }),
    ...(lifecycle === undefined ? {} : { lifecycle }),
    ...(guestCid === undefined ? {} : { guest_cid: guestCid }),
  };
}
