/** Composition of the agents' parts: names, messages, barriers, waits and wake-ups. */
import type { RoomUid } from "../../shared/ids.ts";
import { RoomChanges } from "../core/call/room-changes.ts";
import { Notifier } from "../core/concurrency/notifier.ts";
import { describeError, ServiceError } from "../core/service-error.ts";
import { forgetRows } from "../db/room-rows.ts";
import { Agents } from "../domain/agents/index.ts";
import { makeBarriers } from "../domain/barriers/index.ts";
import { makeFabric } from "../domain/fabric/index.ts";
import type { Meter } from "../domain/orgs/index.ts";
import { makeAgentLookup } from "../domain/sandboxes/index.ts";
import type { Base } from "./base.ts";

export function composeAgents({ config, log, database, reads, finder, tracing }: Base, meter: Meter) {
  const findRoom = finder.find;
  const { traces } = tracing;
  const bells = new Notifier();
  const changes = new RoomChanges(bells);
  database.onCommit(() => changes.anyChanged());
  const sandboxes = makeAgentLookup(database.queries);
  const agents = new Agents({
    database,
    sandboxOf: sandboxes.agentOf,
    liveSandboxes: sandboxes.liveAgents,
    waitsChanged: (roomUid) => changes.changed(roomUid),
  });
  const ackMs = config["fabric.ack"] * 1000;
  const keptBytes = config["fabric.kept_mib"] * 1024 ** 2;
  const deliveries: ((sandboxId: string) => void)[] = [];
  const delivered = (roomUid: RoomUid, agentId: string) => {
    const sandbox = agents.sandboxOf(roomUid, agentId);
    if (sandbox) for (const listener of deliveries) listener(sandbox.sandbox_id);
  };
  const fabric = makeFabric({
    database,
    reads,
    log,
    findRoom,
    agents,
    bells,
    meter,
    delivered,
    ackMs,
    keptBytes,
    traces,
  });
  const barriers = makeBarriers({ database, findRoom, agents, bells });
  const logUnbroken = (error: unknown) => log.error("failed to break barriers", { error: describeError(error) });
  return {
    bells,
    changes,
    agents,
    /** The newest sandbox of each agent. */
    sandboxes,
    /** Calls `listener` when a message is in the inbox of a sandbox's agent. */
    onDelivered: (listener: (sandboxId: string) => void) => void deliveries.push(listener),
    messagesLately: fabric.lately,
    operations: [...fabric.operations, ...barriers.operations],
    /** Functions that copy agents, messages and barriers when their room branches. */
    branches: { agents: agents.branch, fabric: fabric.branch, barriers: barriers.branch },
    /** Called when an agent's sandbox is new or changes its state. */
    changed: (roomUid: RoomUid, agentId: string) => {
      agents.changed(roomUid, agentId);
      changes.changed(roomUid);
      if (!agents.isGone(roomUid, agentId)) return;
      barriers.agentGone(roomUid, agentId).catch(logUnbroken);
      // Wakes all waiters for the agent, or as it: they look again and find it gone.
      bells.ringAll(roomUid);
    },
    /** The effect of a room's end on its agents. */
    ofRoom: {
      endWaits: ({ room_id, room_uid }: { room_id: string; room_uid: RoomUid }) =>
        bells.end(room_uid, new ServiceError("room_destroying", { detail: `Room ${room_id} is being destroyed.` })),
      forget: async (roomUid: RoomUid) => {
        await fabric.forget(roomUid);
        await barriers.forget(roomUid);
        await agents.forget(roomUid);
        await database.commit((queries) => forgetRows(queries, roomUid));
      },
    },
    /** While a room moves. */
    pauses: {
      begin: (roomUid: RoomUid, error: ServiceError) => bells.end(roomUid, error),
      end: (roomUid: RoomUid) => bells.reopen(roomUid),
    },
    recover: () => fabric.recover(),
    start: () => {
      fabric.start();
      barriers.start().catch(logUnbroken);
    },
    stop: () => {
      fabric.stop();
      bells.close(new ServiceError("shutting_down"));
    },
  };
}
