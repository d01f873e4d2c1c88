/** The class Room, the client of one room of a service: the sandboxes of its agents, its drive, and its messages. */
import { Agent, type Destination, type Outgoing, type SendOptions } from "./agent.ts";
import type { Client, Result } from "./client.ts";
import { Drive } from "./drive.ts";
import type {
  Agent as AgentRecord,
  AuditRecord,
  Checkpoint,
  MessageReceipt,
  Room as RoomRecord,
  Sandbox as SandboxRecord,
} from "./generated/schemas.ts";
import { Sandbox } from "./sandbox.ts";
import { type SandboxOptions, unlessGone } from "./sandbox-create.ts";
import type { CallOptions } from "./transport.ts";

/** Sender of messages that are from no agent of the room. */
const OPERATOR = "operator";

/** A room: the sandboxes of a group of agents, their drive and their messages. */
export class Room {
  /** Name of the room. */
  readonly id: string;
  /** Files that all sandboxes of the room share. */
  readonly drive: Drive;
  readonly #client: Client;

  /** References an existing room. No call is made. */
  constructor(client: Client, id: string) {
    this.id = id;
    this.drive = new Drive(client, id);
    this.#client = client;
  }

  /** Its record. */
  get(options: CallOptions = {}): Promise<RoomRecord> {
    return this.#client.call("room_get", { room_id: this.id }, options);
  }

  /** Creates a sandbox for an agent, and waits until it can run commands. */
  createSandbox(agentId: string, options: SandboxOptions = {}): Promise<Sandbox> {
    return Sandbox.createIn(this.#client, this.id, agentId, options);
  }

  /** References an existing sandbox, by its agent. No call is made. */
  sandbox(agentId: string): Sandbox {
    return new Sandbox(this.#client, this.id, agentId);
  }

  /** Yields the records of the room's sandboxes. */
  sandboxes(options: CallOptions = {}): AsyncGenerator<SandboxRecord> {
    return this.#client.items("sandbox_list", { room_id: this.id }, options);
  }

  /** An agent of the room, by its name; it needs no sandbox. */
  agent(id: string): Agent {
    return Agent.of(this.#client, this.id, id);
  }

  /** Yields the records of the room's agents. */
  agents(options: CallOptions = {}): AsyncGenerator<AgentRecord> {
    return this.#client.items("agent_list", { room_id: this.id }, options);
  }

  /** Sends a message as the operator. */
  send(destination: Destination, payload: unknown, options: SendOptions = {}): Promise<Result<"agent_send">> {
    return this.agent(OPERATOR).send(destination, payload, options);
  }

  /** Sends up to 256 messages as the operator, in one call, all or none. */
  sendMany(messages: readonly Outgoing[], options: CallOptions = {}): Promise<MessageReceipt[]> {
    return this.agent(OPERATOR).sendMany(messages, options);
  }

  /** Yields the audit records of the room from now on, or those after the record number `after`; 0 is the start of the room. */
  async *events({ after, signal }: Pick<CallOptions, "signal"> & { after?: number } = {}): AsyncGenerator<AuditRecord> {
    const options = signal ? { signal } : {};
    // The current position has to be known before the first event: the connection may be lost before it.
    const from = after ?? (await this.#lastSeq(options));
    yield* this.#client.events(
      "room_events",
      { room_id: this.id, after: from },
      options,
    ) as AsyncGenerator<AuditRecord>;
  }

  async #lastSeq(options: CallOptions): Promise<number> {
    const { items } = await this.#client.call("audit_list", { room_id: this.id, limit: 1 }, options);
    return items[0]?.seq ?? 0;
  }

  /** Saves the state of the room at one instant: sandboxes, drive, messages and barriers. */
  checkpoint({ name, ...options }: CallOptions & { name?: string } = {}): Promise<Checkpoint> {
    return this.#client.call("room_checkpoint", { room_id: this.id, ...(name === undefined ? {} : { name }) }, options);
  }

  /** Creates another room from the current state, or from a checkpoint; its sandboxes continue there. */
  async fork(
    roomId: string,
    { checkpointId, ...options }: CallOptions & { checkpointId?: string } = {},
  ): Promise<OwnRoom> {
    const checkpoint = checkpointId === undefined ? {} : { checkpoint_id: checkpointId };
    await this.#client.call("room_fork", { source_room_id: this.id, room_id: roomId, ...checkpoint }, options);
    return new OwnRoom(this.#client, roomId);
  }

  /** Restores the room to a checkpoint. */
  restore(checkpointId: string, options: CallOptions = {}): Promise<Result<"room_restore">> {
    return this.#client.call("room_restore", { room_id: this.id, checkpoint_id: checkpointId }, options);
  }

  /**
   * Destroys the room and its sandboxes; a room that has ended is not an error. The drive is kept for a day, unless `drive` is "delete".
   */
  async destroy({ drive, ...options }: CallOptions & { drive?: "retain" | "delete" } = {}): Promise<void> {
    const input = { room_id: this.id, ...(drive === undefined ? {} : { drive }) };
    await unlessGone(() => this.#client.call("room_destroy", input, options));
    Agent.forget(this.#client, this.id);
  }
}

/** A room that this program created. The end of an `await using` block destroys it, and deletes its drive unless `keep` was given. */
export class OwnRoom extends Room {
  readonly #keep: boolean;

  /** A room by its name. With `keep` its drive survives the `await using` block for a day. */
  constructor(client: Client, id: string, { keep = false }: { keep?: boolean } = {}) {
    super(client, id);
    this.#keep = keep;
  }

  /** Destroys the room at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.destroy({ drive: this.#keep ? "retain" : "delete" });
  }
}
