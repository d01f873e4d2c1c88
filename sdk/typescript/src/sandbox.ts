/** A sandbox: a virtual machine that serves one agent of a room. */
import { Agent } from "./agent.ts";
import { Calls } from "./calls.ts";
import { Client, type ClientOptions, type Input, type Result } from "./client.ts";
import { inTime } from "./deadline.ts";
import { NotFoundError, RoomdError, UsageError } from "./errors.ts";
import { type Command, type CommandOptions, type CommandResult, Execution, type SandboxName } from "./execution.ts";
import { Files } from "./files.ts";
import type { ExposedPort, Sandbox as SandboxRecord, Snapshot, TerminalCreateRequest } from "./generated/schemas.ts";
import { untilListening } from "./listening.ts";
import { roomNameOf } from "./names.ts";
import {
  checkOwnOptions,
  checkSandboxOptions,
  createRoom,
  createSandbox,
  isOfEarlierCall,
  isUndone,
  OWN_ROOM_LABEL,
  type OwnSandboxOptions,
  ownRoomOf,
  type SandboxOptions,
  unlessGone,
  withIdleAction,
} from "./sandbox-create.ts";
import { namesOf, SandboxMembers } from "./spellings.ts";
import { Terminal } from "./terminal.ts";
import { type CallOptions, longestWaitOf } from "./transport.ts";

/** The agent name of a sandbox with its own room. */
const OWN_AGENT = "main";
/** Shortest lifetime that can be set. */
const LEAST_LIFETIME_MS = 1000;
/** Timeout for destroying a sandbox that failed to start. */
const ENDING_MS = 30_000;
/** Longest wait for a server: by default, and of one call. */
const SERVER_WAIT_MS = { default: 60_000, call: 50_000 } as const;

/** Filters of a list of sandboxes. */
export interface SandboxListOptions extends CallOptions {
  /** Only sandboxes with this label. */
  label?: { name: string; value: string };
  /** Only sandboxes in this state. */
  state?: SandboxRecord["state"];
  /** Only sandboxes of this room. */
  roomId?: string;
}

/** A change of a sandbox. Absent fields keep their value. */
export interface SandboxChange extends CallOptions {
  /** Replaces all labels. */
  labels?: Record<string, string>;
  /** Idle time in seconds; null for never idle. */
  idleTimeoutSeconds?: number | null;
  /** Lifetime since its creation in seconds; null for no end. */
  maxDurationSeconds?: number | null;
  /** Lifetime from now on in seconds; null for no end. */
  expiresInSeconds?: number | null;
  /** Idle time, idle action and wake reasons. */
  lifecycle?: Input<"sandbox_update">["lifecycle"];
}

/** A virtual machine that serves one agent of a room. */
export class Sandbox extends SandboxMembers {
  /** Name of the sandbox's agent, unique in the room. */
  readonly agentId: string;
  /** Name of its room. */
  readonly roomId: string;
  /** Messages and barriers of the sandbox's agent. */
  readonly agent: Agent;
  /** Files of its own disk. */
  readonly files: Files;
  readonly #client: Client;
  readonly #name: SandboxName;
  #record: SandboxRecord | null;
  /** Whether the room ends with the sandbox. */
  #ownsRoom = false;
  #keepsDrive = false;
  /** Closed with the sandbox; null if the client is shared. */
  #ownClient: Client | null = null;

  /** References an existing sandbox, by its room and agent. No call is made. */
  constructor(client: Client, roomId: string, agentId: string, record: SandboxRecord | null = null) {
    super();
    this.roomId = roomId;
    this.agentId = agentId;
    this.agent = Agent.of(client, roomId, agentId);
    this.#client = client;
    this.#name = { room_id: roomId, sandbox: agentId };
    this.#record = record;
    this.files = new Files(client, this.#name);
  }

  /**
   * Creates a sandbox in its own room, which is destroyed with it. By default it hibernates after 15 minutes without use, is woken by the
   * next use, and the room is destroyed after 24 hours.
   */
  static async create(options: OwnSandboxOptions = {}): Promise<Sandbox> {
    checkOwnOptions(options);
    const client = new Client(options);
    const calls = new Calls(options);
    // Chosen before the call: the room may be created and the response lost.
    const room_id = roomNameOf(options.idempotencyKey);
    let mayBe = true;
    try {
      await createRoom(client, { room_id, ...ownRoomOf(options) }, calls.next()).catch((error: unknown) => {
        mayBe = !isUndone(error);
        throw error;
      });
      const record = await createSandbox(client, room_id, OWN_AGENT, withIdleAction(options), calls);
      return Sandbox.#owned(client, record, options);
    } catch (error) {
      const end = () => client.call("room_destroy", { room_id, drive: "delete" }, { waitMs: ENDING_MS });
      if (mayBe && !isOfEarlierCall(error)) await end().catch(() => {});
      client.close();
      throw error;
    }
  }

  /**
   * Connects to an existing sandbox, by its `sandboxId` or "ROOM/AGENT". If `Sandbox.create` created it, `destroy` ends its room as well.
   * Throws NotFoundError if it does not exist.
   */
  static async connect(id: string, options: ClientOptions & CallOptions & { keep?: boolean } = {}): Promise<Sandbox> {
    const client = new Client(options);
    const calls = new Calls(options);
    try {
      const { room_id, agent_id } = await client.call("locate", { id }, calls.next());
      if (room_id === null || agent_id === null) throw new RoomdError(`${id} is not a sandbox.`);
      const record = await client.call("sandbox_get", { room_id, sandbox: agent_id }, calls.next());
      const room = await client.call("room_get", { room_id }, calls.next());
      // A copy of the sandbox is in the same room, which does not end with the copy.
      const isOwn = room.labels[OWN_ROOM_LABEL] === "true" && agent_id === OWN_AGENT;
      if (isOwn) return Sandbox.#owned(client, record, options);
      const sandbox = new Sandbox(client, room_id, agent_id, record);
      sandbox.#ownClient = client;
      return sandbox;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  /** Records of the organization's sandboxes, over all rooms. */
  static async *list(options: SandboxListOptions & ClientOptions = {}): AsyncGenerator<SandboxRecord> {
    const client = new Client(options);
    const { label, state, roomId: room_id } = options;
    const filter = {
      ...(label === undefined ? {} : { label: `${label.name}:${label.value}` }),
      ...(state === undefined ? {} : { state }),
      ...(room_id === undefined ? {} : { room_id }),
    };
    try {
      yield* client.items("org_sandbox_list", filter, callOptionsOf(options));
    } finally {
      client.close();
    }
  }

  /** Creates a sandbox in a room, and waits until it can run commands. */
  static async createIn(
    client: Client,
    roomId: string,
    agentId: string,
    options: SandboxOptions = {},
  ): Promise<Sandbox> {
    checkSandboxOptions(options);
    return new Sandbox(
      client,
      roomId,
      agentId,
      await createSandbox(client, roomId, agentId, options, new Calls(options)),
    );
  }

  static #owned(client: Client, record: SandboxRecord, { keep = false }: { keep?: boolean }): Sandbox {
    const sandbox = new Sandbox(client, record.room_id, record.agent_id, record);
    sandbox.#ownsRoom = true;
    sandbox.#keepsDrive = keep;
    sandbox.#ownClient = client;
    return sandbox;
  }

  /** The sandbox's id, for `Sandbox.connect`. After `room.sandbox(name)` it is known once a call such as `get` has returned the record. */
  get sandboxId(): string {
    return this.#known.sandbox_id;
  }

  /** The sandbox's state in the last record that this object received; `get` fetches the current one. */
  get state(): SandboxRecord["state"] {
    return this.#known.state;
  }

  get #known(): SandboxRecord {
    if (this.#record === null) throw new RoomdError("The sandbox's record is not loaded yet: call get() first.");
    return this.#record;
  }

  async #noted(answer: Promise<SandboxRecord>): Promise<SandboxRecord> {
    this.#record = await answer;
    return this.#record;
  }

  /** Its record. */
  get(options: CallOptions = {}): Promise<SandboxRecord> {
    return this.#noted(this.#client.call("sandbox_get", this.#name, options));
  }

  /** Whether the sandbox runs now; false during hibernation and after its end. */
  async isRunning(options: CallOptions = {}): Promise<boolean> {
    try {
      return (await this.get(options)).state === "running";
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  /** Changes labels, idle action or end. */
  update(change: SandboxChange): Promise<SandboxRecord> {
    const { labels, idleTimeoutSeconds, maxDurationSeconds, expiresInSeconds, lifecycle } = change;
    const request = {
      ...(labels === undefined ? {} : { labels }),
      ...(idleTimeoutSeconds === undefined ? {} : { idle_timeout_seconds: idleTimeoutSeconds }),
      ...(maxDurationSeconds === undefined ? {} : { max_duration_seconds: maxDurationSeconds }),
      ...(expiresInSeconds === undefined ? {} : { expires_in_seconds: expiresInSeconds }),
      ...(lifecycle === undefined ? {} : { lifecycle }),
    };
    return this.#noted(this.#client.call("sandbox_update", { ...this.#name, ...request }, callOptionsOf(change)));
  }

  /** Sets its end, and the end of its own room, to `ms` milliseconds from now; a later call moves the end. */
  async setTimeout(ms: number, options: CallOptions = {}): Promise<void> {
    if (ms < LEAST_LIFETIME_MS) {
      throw new UsageError(`setTimeout takes milliseconds, at least ${LEAST_LIFETIME_MS}: ${ms} s are ${ms * 1000}.`);
    }
    const calls = new Calls(options);
    const expires_in_seconds = Math.ceil(ms / 1000);
    await this.#noted(this.#client.call("sandbox_update", { ...this.#name, expires_in_seconds }, calls.next()));
    if (!this.#ownsRoom) return;
    await this.#client.call("room_update", { room_id: this.roomId, expires_in_seconds }, calls.next());
  }

  /** Replaces the list of destinations to which the sandbox may connect; open connections to other destinations are closed. */
  setEgress(allowlist: readonly string[], options: CallOptions = {}): Promise<Result<"egress_set">> {
    return this.#client.call("egress_set", { ...this.#name, allowlist: namesOf(allowlist, "setEgress") }, options);
  }

  /** The sandbox's current use of CPU, memory and disk. */
  metrics(options: CallOptions = {}): Promise<Result<"sandbox_metrics">> {
    return this.#client.call("sandbox_metrics", this.#name, options);
  }

  /** Lines of the sandbox's console, or of its guest agent's log, from a byte offset on. */
  logs({
    source,
    after,
    limit,
    ...options
  }: CallOptions & { source?: "console" | "agent"; after?: number; limit?: number } = {}): Promise<
    Result<"sandbox_logs">
  > {
    const query = {
      ...(source === undefined ? {} : { source }),
      ...(after === undefined ? {} : { after }),
      ...(limit === undefined ? {} : { limit }),
    };
    return this.#client.call("sandbox_logs", { ...this.#name, ...query }, options);
  }

  /** The address of the DevTools protocol of the sandbox's browser, with the headers for connecting, for Playwright and Puppeteer. */
  browser(options: CallOptions = {}): Promise<Result<"browser_get">> {
    return this.#client.call("browser_get", this.#name, options);
  }

  /** Whether a file or directory exists in the sandbox. */
  exists(path: string, options: CallOptions = {}): Promise<boolean> {
    return this.files.exists(path, options);
  }

  /**
   * Runs a command and waits for its end. `timeoutMs` ends the command, after 10 minutes by default; `waitMs` ends only the wait. A failed
   * command is not an error: see `exitCode`.
   */
  exec(command: Command, options: CommandOptions = {}): Promise<CommandResult> {
    return Execution.run(this.#client, this.#name, command, options);
  }

  /** Starts a command and leaves it running, without a time limit by default. Its standard input stays open until `end`. */
  start(command: Command, options: CommandOptions = {}): Promise<Execution> {
    return Execution.start(this.#client, this.#name, command, options);
  }

  /** References a command that was started before, by its `execId`. */
  execution(id: string): Execution {
    return new Execution(this.#client, this.#name, id);
  }

  /** Opens a terminal: a login shell of 80 by 24 by default. */
  async openTerminal(request: Partial<TerminalCreateRequest> = {}, options: CallOptions = {}): Promise<Terminal> {
    const input = { ...this.#name, rows: 24, cols: 80, ...request };
    const { terminal_id } = await this.#client.call("terminal_create", input, options);
    return new Terminal(this.#client, this.#name, terminal_id);
  }

  /** References an existing terminal, by its id. */
  terminal(id: string): Terminal {
    return new Terminal(this.#client, this.#name, id);
  }

  /**
   * Makes a server in the sandbox reachable by URL; a repeated call for the same port returns the same record. With `wait` it returns once
   * the server listens, and throws TimeoutError after `waitMs` (60 s by default).
   */
  async exposePort(
    port: number,
    { visibility, wait = false, ...options }: CallOptions & { visibility?: "private" | "public"; wait?: boolean } = {},
  ): Promise<ExposedPort> {
    const input = { ...this.#name, port, ...(visibility === undefined ? {} : { visibility }) };
    if (!wait) return this.#client.call("sandbox_expose_port", input, options);
    const waitMs = longestWaitOf(options) ?? SERVER_WAIT_MS.default;
    const calls = new Calls({ ...options, waitMs });
    for (;;) {
      const wait_ms = Math.round(Math.min(SERVER_WAIT_MS.call, calls.leftMs));
      const exposed = await this.#client.call("sandbox_expose_port", { ...input, wait_ms }, calls.next());
      if (exposed.listening) return exposed;
    }
  }

  /** Waits until a server listens on a port, without exposing it. Throws TimeoutError after `waitMs`, 60 s by default. */
  async waitForPort(port: number, options: CallOptions = {}): Promise<void> {
    const waitMs = longestWaitOf(options) ?? SERVER_WAIT_MS.default;
    const late = `No server listens on port ${port} after ${waitMs} ms.`;
    await inTime({ ...options, waitMs }, late, (each) => untilListening(this.files, port, each));
  }

  /** Saves the sandbox's current state; it keeps running. */
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

  /** Creates running copies of the sandbox in its room, one for each agent. Throws ForkError, with the copies created, if any failed. */
  async fork(agents: readonly string[], options: CallOptions = {}): Promise<Sandbox[]> {
    const forks = namesOf(agents, "fork").map((agent_id) => ({ agent_id }));
    const { items } = await this.#client.call("sandbox_fork", { ...this.#name, agents: forks }, options);
    const made = items.flatMap(({ sandbox }) =>
      sandbox === null ? [] : [new Sandbox(this.#client, sandbox.room_id, sandbox.agent_id, sandbox)],
    );
    const problems = items.flatMap(({ agent_id, problem }) => (problem === null ? [] : [{ agent_id, ...problem }]));
    if (problems.length > 0) throw new ForkError(made, problems);
    return made;
  }

  /** Restores it to a snapshot. */
  rollback(snapshotId: string, options: CallOptions = {}): Promise<SandboxRecord> {
    return this.#noted(this.#client.call("sandbox_rollback", { ...this.#name, snapshot_id: snapshotId }, options));
  }

  /** Pauses it in memory. */
  standby(options: CallOptions = {}): Promise<SandboxRecord> {
    return this.#noted(this.#client.call("sandbox_standby", this.#name, options));
  }

  /** Saves the sandbox to disk; it uses no memory until it is resumed or woken. */
  hibernate(options: CallOptions = {}): Promise<SandboxRecord> {
    return this.#noted(this.#client.call("sandbox_hibernate", this.#name, options));
  }

  /** Resumes the sandbox from standby or hibernation. */
  resume(options: CallOptions = {}): Promise<SandboxRecord> {
    return this.#noted(this.#client.call("sandbox_resume", this.#name, options));
  }

  /** Destroys it, and if it has its own room, also the room and its drive. No error if it is already destroyed. */
  async destroy(options: CallOptions = {}): Promise<void> {
    try {
      await unlessGone(() => this.#end(options));
    } finally {
      this.#ownClient?.close();
    }
  }

  #end(options: CallOptions): Promise<unknown> {
    if (!this.#ownsRoom) return this.#client.call("sandbox_destroy", this.#name, options);
    const drive = this.#keepsDrive ? "retain" : "delete";
    return this.#client.call("room_destroy", { room_id: this.roomId, drive }, options);
  }

  /** `destroy`, at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.destroy();
  }
}

/** Selects the options of a call from larger options. */
function callOptionsOf({ signal, waitMs, timeoutMs, idempotencyKey, headers, retry }: CallOptions): CallOptions {
  return {
    ...(signal === undefined ? {} : { signal }),
    ...(waitMs === undefined ? {} : { waitMs }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(headers === undefined ? {} : { headers }),
    ...(retry === undefined ? {} : { retry }),
  };
}

/** Reason why one forked sandbox could not be created. */
export interface ForkProblem {
  /** The agent that the forked sandbox was for. */
  agent_id: string;
  /** Code of the error. */
  code: string;
  /** Description of the failure. */
  detail: string;
}

/** Some copies of a fork could not be created. The other copies run until they are destroyed. */
export class ForkError extends RoomdError {
  override name = "ForkError";
  /** The forked sandboxes that were created. */
  readonly sandboxes: readonly Sandbox[];
  /** One for each forked sandbox that could not be created. */
  readonly problems: readonly ForkProblem[];

  /** Error of a fork with these outcomes. */
  constructor(sandboxes: readonly Sandbox[], problems: readonly ForkProblem[]) {
    const details = problems.map(({ agent_id, detail }) => `${agent_id}: ${detail}`).join(" ");
    super(`${problems.length} of ${sandboxes.length + problems.length} copies could not be made. ${details}`);
    this.sandboxes = sandboxes;
    this.problems = problems;
  }
}
