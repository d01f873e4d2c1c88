/** The call that exposes a port. */

import type { InputOf } from "../../../shared/api/contract.ts";
import { MAX_PORTS, sandboxExposePort } from "../../../shared/api/ports.ts";
import { LIVE_STATES } from "../../../shared/api/sandboxes.ts";
import { type Bound, bind, type KeyCall } from "../../core/call/operation.ts";
import { requireActive } from "../../core/call/room-target.ts";
import { after, now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { termBy } from "../orgs/grant.ts";
import type { PortTarget } from "./deps.ts";
import { listeningPorts, untilListening } from "./listening.ts";
import type { PortParts } from "./parts.ts";
import { toPortRecord } from "./record.ts";
import { changeMaker, findPort, insertPort, listPorts } from "./store.ts";
import type { PortRow } from "./table.ts";
import { newLabel } from "./tokens.ts";

export function makeExpose(parts: PortParts): Bound {
  return bind(sandboxExposePort, {
    find: (call, params) => parts.sandboxes.find(call, params),
    run: async (call, input, target) => {
      const { port, visibility = "private", label, wait_ms = 0 } = input;
      call.audit.details = { port, visibility };
      let taken_over = false;
      const again = (queries: Queries, known: PortRow, requested: PortRow) => {
        const taken = takenOver(queries, requireSame(known, visibility, label), requested);
        taken_over = taken !== known;
        return taken;
      };
      if (wait_ms > 0) await waitForServer(parts, target, port, wait_ms, again, call.signal);
      const { row, isNew } = await expose(parts, call.caller, target, input, again);
      call.audit.details = {
        ...{ port: row.port, visibility: row.visibility, expires_at: row.expires_at },
        ...(taken_over ? { taken_over } : {}),
      };
      const listening = await listeningPorts(parts.sandboxes, row.sandbox_id, [row.port]);
      return { outcome: isNew ? "created" : "exists", body: toPortRecord(parts, row, listening.has(row.port)) };
    },
  });
}

/** Checks before exposing, so that an exposed port has its audit record immediately. Throws the errors of `expose`. */
async function waitForServer(
  { database, sandboxes }: PortParts,
  target: PortTarget,
  port: number,
  waitMs: number,
  again: Again,
  signal: AbortSignal,
): Promise<void> {
  requireExposable(target);
  const { sandbox_id } = target.row;
  const known = findPort(database.queries, sandbox_id, port);
  if (known) again(database.queries, known, known);
  else if (listPorts(database.queries, sandbox_id).length >= MAX_PORTS) throw tooManyPorts();
  await untilListening(sandboxes, sandbox_id, port, waitMs, signal);
}

type Exposed = { row: PortRow; isNew: boolean };

/** Within the transaction: returns the new row of a port that is already exposed. */
export type Again = (queries: Queries, known: PortRow, requested: PortRow) => PortRow;

/**
 * The port's row, which may have existed before. `made` is called within the transaction that makes it. Throws room_destroying,
 * invalid_state, too_many_ports, and errors of `again`.
 */
export async function expose(
  { database, exposures, isMakerGood }: PortParts,
  caller: KeyCall["caller"],
  target: PortTarget,
  {
    port,
    visibility = "private",
    label,
    expires_in_seconds,
  }: Omit<InputOf<typeof sandboxExposePort>, "room_id" | "sandbox" | "wait_ms">,
  again: Again,
  made: (queries: Queries, row: PortRow) => void = () => {},
): Promise<Exposed> {
  requireExposable(target);
  const { row: sandbox, room } = target;
  const created_at = now();
  const term = termBy(caller);
  const requestedExpiry = expires_in_seconds === undefined ? null : after(created_at, expires_in_seconds);
  const requested: PortRow = {
    label: newLabel(label ?? null),
    sandbox_id: sandbox.sandbox_id,
    port,
    visibility,
    wish: label ?? null,
    org_id: sandbox.org_id,
    room_uid: room.room_uid,
    agent_id: sandbox.agent_id,
    created_at,
    expires_at: sooner(requestedExpiry, term.expires_at),
    ends_with: term.ends_with,
  };
  const { org_id, ends_with } = requested;
  const row = await database.commit((queries) => {
    if (ends_with !== null && !isMakerGood(queries, { org_id, key_id: ends_with })) {
      throw new ServiceError("invalid_api_key", { detail: "The key was revoked or expired during the call." });
    }
    const known = findPort(queries, sandbox.sandbox_id, port);
    if (known) return again(queries, known, requested);
    if (listPorts(queries, sandbox.sandbox_id).length >= MAX_PORTS) throw tooManyPorts();
    exposures.closeEnded(queries, sandbox.sandbox_id);
    insertPort(queries, requested);
    made(queries, requested);
    return requested;
  });
  exposures.keep(row);
  return { row, isNew: row === requested };
}

/** The caller becomes the maker. A guest does not: the port would outlast the key that exposed it. */
function takenOver(queries: Queries, known: PortRow, { ends_with }: PortRow): PortRow {
  if (ends_with === null || ends_with === known.ends_with) return known;
  changeMaker(queries, known.label, ends_with);
  return { ...known, ends_with };
}

/** The earlier of two ends; null is no end. */
function sooner(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}

/** Throws room_destroying, invalid_state. */
export function requireExposable({ room, row: { agent_id, state } }: PortTarget): void {
  requireActive(room);
  if (LIVE_STATES.includes(state)) return;
  throw new ServiceError("invalid_state", {
    detail: `Sandbox ${agent_id} is ${state}: its ports can no longer be exposed.`,
    details: { state, allowed_states: LIVE_STATES },
  });
}

/** Throws already_exists. */
function requireSame(known: PortRow, visibility: PortRow["visibility"], label: string | undefined): PortRow {
  if (known.visibility === visibility && (label === undefined || known.wish === label)) return known;
  throw new ServiceError("already_exists", {
    detail: `Port ${known.port} is already exposed with a different visibility or label.`,
    details: { port: known.port, visibility: known.visibility },
    hint: "Unexpose it first. It then gets a new URL and a new token.",
  });
}

function tooManyPorts(): ServiceError {
  return new ServiceError("too_many_ports", {
    detail: `The sandbox has ${MAX_PORTS} exposed ports, which is the maximum. Unexpose one.`,
    details: { max: MAX_PORTS },
  });
}
