/**
 * The agents of a room, presence and waits: agents of its sandboxes, and other participants under names of their own. Fabric and barriers
 * look up here which agents exist, which are gone, and which waits for which.
 */

import { MAX_ROOM_AGENTS, MAX_ROOM_TOPICS } from "../../../shared/api/fabric.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import type { Caller } from "../../core/call/operation.ts";
import { now, wallMs } from "../../core/clock.ts";
import { WaitGraph } from "../../core/concurrency/wait-graph.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Branch } from "../../db/branch.ts";
import type { Queries } from "../../db/client.ts";
import { rowsOf } from "../../db/room-rows.ts";
import { makeBranch } from "./branch.ts";
import type { AgentSandbox, AgentsDeps } from "./deps.ts";
import type { AgentsState } from "./foreign.ts";
import { countAgents, findAgent, roomAgents, roomTopics, saveAgent, seeAgent } from "./store.ts";
import type { AgentRow } from "./table.ts";
import { matchesTopic } from "./topics.ts";

export { findAgent } from "./store.ts";

const GONE: readonly string[] = ["failed", "destroying", "destroyed"];
/** Agents that a refusal names. */
const MAX_NAMED = 8;
/** Maximum age of an agent's last-seen time on disk. */
const SEEN_STEP_MS = 60_000;

export class Agents {
  readonly waits: WaitGraph;
  readonly #deps: AgentsDeps;
  /** Participants by room, a cache of the table, read on first use. */
  readonly #rooms = new Map<RoomUid, Map<string, AgentRow>>();
  /** Cached sandbox lookups, until a sandbox changes: every message needs one. */
  readonly #sandboxes = new Map<RoomUid, Map<string, AgentSandbox | null>>();

  readonly branch: Branch<AgentsState>;

  constructor(deps: AgentsDeps) {
    this.#deps = deps;
    this.branch = makeBranch({
      database: deps.database,
      isGone: (roomUid, agentId) => this.isGone(roomUid, agentId),
      changed: (roomUid) => this.#readAgain(roomUid),
    });
    this.waits = new WaitGraph((roomUid) => deps.waitsChanged(roomUid as RoomUid));
  }

  /**
   * Within a transaction: records that these agents have acted. The cache holds committed values only: `learn` follows. Throws
   * quota_exceeded if the room has too many agents.
   */
  touch(queries: Queries, roomUid: RoomUid, agentIds: readonly string[]): void {
    const stale = agentIds.filter((agentId) => !this.isFresh(roomUid, agentId));
    this.#requirePlace(queries, roomUid, stale);
    for (const agentId of stale) seeAgent(queries, roomUid, agentId, now());
  }

  /** Whether the agent's stored last-seen time is recent. */
  isFresh(roomUid: RoomUid, agentId: string): boolean {
    const row = this.participants(roomUid).get(agentId);
    // After a backward step of the wall clock, later times must still be stored.
    return row !== undefined && Math.abs(wallMs() - Date.parse(row.last_seen_at)) < SEEN_STEP_MS;
  }

  /** Within a transaction; the caller then calls `learn`. Throws quota_exceeded. */
  subscribe(queries: Queries, roomUid: RoomUid, agentId: string, topics: string[]): void {
    this.#requirePlace(queries, roomUid, [agentId]);
    const others = roomTopics(queries, roomUid, agentId);
    if (others + topics.length > MAX_ROOM_TOPICS) {
      throw new ServiceError("quota_exceeded", {
        detail: `The agents of a room can subscribe to at most ${MAX_ROOM_TOPICS} topics in all.`,
      });
    }
    saveAgent(queries, { room_uid: roomUid, agent_id: agentId, topics, last_seen_at: now() });
  }

  /** After a commit: reads the rows of these agents into the cache. */
  learn(roomUid: RoomUid, agentIds: readonly string[], always = false): void {
    const known = this.participants(roomUid);
    for (const agentId of agentIds) {
      if (!always && this.isFresh(roomUid, agentId)) continue;
      const row = findAgent(this.#deps.database.queries, roomUid, agentId);
      if (row) known.set(agentId, row);
    }
  }

  #requirePlace(queries: Queries, roomUid: RoomUid, agentIds: readonly string[]): void {
    const known = this.participants(roomUid);
    const strangers = agentIds.filter((agentId) => !known.has(agentId) && !findAgent(queries, roomUid, agentId));
    // A single commit adds fewer than MAX_ROOM_AGENTS / 2 agents before `known` contains them.
    if (strangers.length === 0 || known.size + strangers.length <= MAX_ROOM_AGENTS / 2) return;
    if (countAgents(queries, roomUid) + strangers.length <= MAX_ROOM_AGENTS) return;
    throw new ServiceError("quota_exceeded", {
      detail: `The room has ${MAX_ROOM_AGENTS} agents, which is the maximum.`,
    });
  }

  participants(roomUid: RoomUid): Map<string, AgentRow> {
    let known = this.#rooms.get(roomUid);
    if (!known) {
      known = new Map(roomAgents(this.#deps.database.queries, roomUid).map((row) => [row.agent_id, row]));
      this.#rooms.set(roomUid, known);
    }
    return known;
  }

  /** Within a transaction that changed the participants: drops the cache, and drops it again if the transaction is rolled back. */
  #readAgain(roomUid: RoomUid): void {
    const forget = () => void this.#rooms.delete(roomUid);
    forget();
    this.#deps.database.undo(forget);
  }

  /** The states of the sandboxes of the room's agents. */
  sandboxes(roomUid: RoomUid): AgentSandbox[] {
    return this.#deps.liveSandboxes(roomUid);
  }

  sandboxOf(roomUid: RoomUid, agentId: string): AgentSandbox | null {
    let known = this.#sandboxes.get(roomUid);
    if (!known) {
      known = new Map();
      this.#sandboxes.set(roomUid, known);
    }
    let sandbox = known.get(agentId);
    if (sandbox === undefined) {
      sandbox = this.#deps.sandboxOf(roomUid, agentId);
      if (known.size < MAX_ROOM_AGENTS) known.set(agentId, sandbox);
    }
    return sandbox;
  }

  /** Invalidates the cache: the agent has a new sandbox, or its sandbox a new state. */
  changed(roomUid: RoomUid, agentId: string): void {
    this.#sandboxes.get(roomUid)?.delete(agentId);
  }

  /** Whether the agent's sandbox has ended. */
  isGone(roomUid: RoomUid, agentId: string): boolean {
    return GONE.includes(this.sandboxOf(roomUid, agentId)?.state ?? "");
  }

  /** Throws agent_unavailable. */
  requireAlive(roomUid: RoomUid, agentId: string): void {
    if (this.isGone(roomUid, agentId)) throw agentGone(agentId);
  }

  /** Throws agent_not_found, agent_unavailable. */
  require(roomUid: RoomUid, agentId: string): void {
    const sandbox = this.sandboxOf(roomUid, agentId);
    if (sandbox && GONE.includes(sandbox.state)) throw agentGone(agentId);
    if (sandbox?.fabric_attached || this.participants(roomUid).has(agentId)) return;
    throw new ServiceError("agent_not_found", {
      detail: sandbox
        ? `The sandbox of ${agentId} was created with attach_fabric false, so the room has no such agent.`
        : `The room has no agent ${agentId}.`,
      details: { agent_id: agentId },
      ...(sandbox ? {} : { hint: this.#known(roomUid) }),
    });
  }

  #known(roomUid: RoomUid): string {
    const all = this.all(roomUid);
    const names = all.slice(0, MAX_NAMED).join(", ") + (all.length > MAX_NAMED ? ", …" : "");
    return all.length === 0 ? "No agent is in the room yet." : `Agents of the room: ${names}.`;
  }

  /** All agents except those with an ended sandbox, by name. */
  all(roomUid: RoomUid): string[] {
    const attached = this.sandboxes(roomUid).filter(({ fabric_attached }) => fabric_attached);
    const names = new Set(attached.map(({ agent_id }) => agent_id));
    for (const agentId of this.participants(roomUid).keys()) {
      if (!names.has(agentId) && !this.isGone(roomUid, agentId)) names.add(agentId);
    }
    return [...names].sort();
  }

  /** The agents that subscribe to a topic, except those with an ended sandbox. */
  subscribers(roomUid: RoomUid, topic: string): string[] {
    return [...this.participants(roomUid).values()]
      .filter(({ topics }) => topics.some((pattern) => matchesTopic(pattern, topic)))
      .map(({ agent_id }) => agent_id)
      .filter((agentId) => !this.isGone(roomUid, agentId))
      .sort();
  }

  /** The room is gone: removes its agents, some in each commit. */
  async forget(roomUid: RoomUid): Promise<void> {
    await this.branch.drop(rowsOf(this.#deps.database.queries, roomUid));
    this.#rooms.delete(roomUid);
    this.#sandboxes.delete(roomUid);
  }
}

export function agentGone(agentId: string): ServiceError {
  return new ServiceError("agent_unavailable", {
    detail: `The sandbox of agent ${agentId} is gone.`,
    details: { agent_id: agentId },
  });
}

/**
 * The agent that a caller acts as: a key that is bound to an agent, as a guest's key is, acts as no other. Throws source_mismatch, and
 * validation_failed if no agent is named.
 */
export function actingAs(caller: Caller, named: string | undefined, field: string): string {
  const bound = caller.agent_id;
  if (bound !== null && named !== undefined && named !== bound) {
    throw new ServiceError("source_mismatch", {
      detail: `This caller is agent ${bound} and cannot act as ${named}.`,
      details: { agent_id: bound },
    });
  }
  const agentId = named ?? bound;
  if (agentId !== null) return agentId;
  const message = `${field} is required.`;
  throw new ServiceError("validation_failed", { detail: message, errors: [{ field, code: "required", message }] });
}
