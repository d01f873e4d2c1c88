/**
 * The operation that resolves an id. Things that the caller may not read are as unknown to it as things that never existed: every look-up
 * is restricted to its organization, and to its key's bounds.
 */
import type { OutputOf, Scope } from "../../../shared/api/contract.ts";
import { locate } from "../../../shared/api/locate.ts";
import { type Placed, pathOf } from "../../../shared/places.ts";
import { type Bound, bind, boundTo, type Caller } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { RecordKey, Within } from "../audit/index.ts";

type LocatedPlace = Placed | null;
/** The caller may disconnect before the search ends. */
type Finder = (caller: Caller, id: string, left: AbortSignal) => LocatedPlace | Promise<LocatedPlace>;

/** A thing in a room, with its sandbox or agent. */
export interface InRoom {
  room_uid: string;
  agent_id: string;
}

interface Room {
  room_id: string;
  room_uid: string;
}

/** Lookups of each kind of resource; undefined and null: the organization, or the caller, has none. */
export interface Lookups {
  /** By its name, if the caller may see it. */
  room(caller: Caller, roomId: string): Room | undefined;
  roomOf(caller: Caller, roomUid: string): Room | undefined;
  /** Rooms to which the caller is bound; null: not bound. */
  roomsOf(caller: Caller): string[] | null;
  sandbox(caller: Caller, sandboxId: string): InRoom | undefined;
  snapshot(caller: Caller, snapshotId: string): InRoom | undefined;
  checkpoint(caller: Caller, checkpointId: string): Pick<InRoom, "room_uid"> | undefined;
  isAgent(roomUid: string, agentId: string): boolean;
  isBarrier(roomUid: string, barrierId: string): boolean;
  /** `parties` are the agents that can see the message. */
  message(caller: Caller, messageId: string): { room_uid: string; parties: readonly string[] } | undefined;
  port(caller: Caller, label: string): InRoom | undefined;
  isKey(caller: Caller, keyId: string): boolean;
  /** Accounts: a member, or a thing of the calling person's own. */
  ofPeople(caller: Caller, id: string): Placed["type"] | null;
  /** Whether the calling person has authorized an application, by its id or by the grant's. */
  isApplication(caller: Caller, id: string): boolean;
  isCredit(caller: Caller, entryId: string): boolean;
  isSshKey(caller: Caller, sshKeyId: string): boolean;
  isWebhook(caller: Caller, webhookId: string): boolean;
  sshAccess(caller: Caller, accessId: string): InRoom | undefined;
  isTemplate(caller: Caller, templateId: string): boolean;
  isBuild(caller: Caller, buildId: string): boolean;
  record(
    within: Within,
    key: RecordKey,
    left: AbortSignal,
  ): Promise<{
    room_id: string | null;
    room_uid: string | null;
    agent_id: string | null;
  } | null>;
}

/** Ids that the error echoes: a link may contain any text. */
const PLAIN = /^[\x21-\x7e]{1,128}$/;

export function makeLocate({ lookups }: { lookups: Lookups }): Bound {
  const find = findersOf(lookups);
  return bind(locate, {
    run: async (call, { id }) => {
      const found = await find(call.caller, id, call.signal);
      if (!found) {
        throw new ServiceError("id_not_found", {
          detail: PLAIN.test(id) ? `Nothing that the key may read has the id ${id}.` : "It is not a valid id.",
        });
      }
      const { type, room_id, agent_id } = found;
      Object.assign(call.audit, room_id === null ? {} : { room_id }, agent_id === null ? {} : { agent_id });
      call.audit.details = { id, type };
      return { outcome: "ok", body: { ...found, path: pathOf(found) } satisfies OutputOf<typeof locate> };
    },
  });
}

function findersOf(lookups: Lookups): Finder {
  const inRoom = (caller: Caller, type: Placed["type"], id: string, it: InRoom | undefined): LocatedPlace => {
    const room = it && lookups.roomOf(caller, it.room_uid);
    if (!it || !room || !isOwn(caller, it.agent_id)) return null;
    return { type, id, room_id: room.room_id, agent_id: it.agent_id };
  };
  const recorded = async (
    caller: Caller,
    type: Placed["type"],
    id: string,
    key: RecordKey,
    left: AbortSignal,
  ): Promise<LocatedPlace> => {
    const { org_id, agent_id } = caller;
    const record = await lookups.record({ org_id, agent_id, room_uids: lookups.roomsOf(caller) }, key, left);
    if (!record) return null;
    if (type === "audit" || type === "request") {
      return { type, id, room_id: record.room_id, agent_id: record.agent_id };
    }
    const { room_uid, agent_id: agent } = record;
    return room_uid === null || agent === null ? null : inRoom(caller, type, id, { room_uid, agent_id: agent });
  };

  const room: Finder = (caller, id) => {
    const row = needs(caller, "rooms:read") ? (lookups.room(caller, id) ?? lookups.roomOf(caller, id)) : undefined;
    return row ? { type: "room", id: row.room_id, room_id: row.room_id, agent_id: null } : null;
  };
  const sandbox: Finder = (caller, id) =>
    needs(caller, "sandboxes:read") ? inRoom(caller, "sandbox", id, lookups.sandbox(caller, id)) : null;
  const snapshot: Finder = (caller, id) =>
    needs(caller, "sandboxes:read") ? inRoom(caller, "snapshot", id, lookups.snapshot(caller, id)) : null;
  const checkpoint: Finder = (caller, id) => {
    const found = needs(caller, "rooms:read") ? lookups.checkpoint(caller, id) : undefined;
    const place = found && lookups.roomOf(caller, found.room_uid);
    return place ? { type: "checkpoint", id, room_id: place.room_id, agent_id: null } : null;
  };
  const port: Finder = (caller, id) =>
    needs(caller, "sandboxes:read") ? inRoom(caller, "port", id, lookups.port(caller, id)) : null;
  const message: Finder = (caller, id) => {
    const it = needs(caller, "fabric:read") ? lookups.message(caller, id) : undefined;
    const place = it && lookups.roomOf(caller, it.room_uid);
    const isSeen = caller.agent_id === null || it?.parties.includes(caller.agent_id);
    return place && isSeen ? { type: "message", id, room_id: place.room_id, agent_id: null } : null;
  };
  const execution: Finder = (caller, id, left) =>
    needs(caller, "audit:read") ? recorded(caller, "execution", id, { exec_id: id }, left) : null;
  const terminal: Finder = (caller, id, left) =>
    needs(caller, "audit:read") ? recorded(caller, "terminal", id, { terminal_id: id }, left) : null;
  const recording: Finder = (caller, id, left) =>
    needs(caller, "audit:read") ? recorded(caller, "recording", id, { recording_id: id }, left) : null;
  const record: Finder = (caller, id, left) =>
    needs(caller, "audit:read") ? recorded(caller, "audit", id, { audit_id: id }, left) : null;
  const request: Finder = (caller, id, left) =>
    needs(caller, "audit:read") ? recorded(caller, "request", id, { request_id: id }, left) : null;
  const nowhere = (type: Placed["type"] | null, id: string): LocatedPlace =>
    type && { type, id, room_id: null, agent_id: null };
  const application: Finder = (caller, id) => nowhere(lookups.isApplication(caller, id) ? "application" : null, id);
  const key: Finder = (caller, id) =>
    nowhere(lookups.isKey(caller, id) ? "key" : lookups.isApplication(caller, id) ? "application" : null, id);
  const org: Finder = ({ org_id }, id) => nowhere(id === org_id ? "org" : null, id);
  const person: Finder = (caller, id) => nowhere(isOfAll(caller) ? lookups.ofPeople(caller, id) : null, id);
  const credit: Finder = (caller, id) =>
    nowhere(isOfAll(caller) && needs(caller, "usage:read") && lookups.isCredit(caller, id) ? "credit" : null, id);
  const sshKey: Finder = (caller, id) => {
    const maySee = isOfAll(caller) && (needs(caller, "audit:read") || needs(caller, "keys:write"));
    return nowhere(maySee && lookups.isSshKey(caller, id) ? "ssh_key" : null, id);
  };
  const webhook: Finder = (caller, id) => {
    const sees = caller.session?.gives ?? caller.scopes;
    return nowhere(
      isOfAll(caller) && sees.includes("org:admin") && lookups.isWebhook(caller, id) ? "webhook" : null,
      id,
    );
  };
  const sshAccess: Finder = (caller, id) => {
    const maySee = needs(caller, "audit:read") || needs(caller, "terminal");
    return maySee ? inRoom(caller, "ssh_access", id, lookups.sshAccess(caller, id)) : null;
  };
  const template: Finder = (caller, id) =>
    needs(caller, "sandboxes:read") && lookups.isTemplate(caller, id)
      ? { type: "template", id, room_id: null, agent_id: null }
      : null;
  const build: Finder = (caller, id) =>
    nowhere(needs(caller, "sandboxes:read") && lookups.isBuild(caller, id) ? "template_build" : null, id);
  const named: Finder = (caller, id) => {
    const [roomId = "", name = ""] = splitOnce(id);
    const place = needs(caller, "rooms:read") ? lookups.room(caller, roomId) : undefined;
    if (!place) return null;
    const { room_id, room_uid } = place;
    if (needs(caller, "sandboxes:read") && isOwn(caller, name) && lookups.isAgent(room_uid, name)) {
      return { type: "agent", id: name, room_id, agent_id: name };
    }
    return needs(caller, "fabric:read") && lookups.isBarrier(room_uid, name)
      ? { type: "barrier", id: name, room_id, agent_id: null }
      : null;
  };

  const byPrefix: Record<string, Finder> = {
    rom: room,
    sbx: sandbox,
    snap: snapshot,
    chk: checkpoint,
    exe: execution,
    ter: terminal,
    rec: recording,
    msg: message,
    evt: record,
    req: request,
    kid: key,
    org,
    usr: person,
    ses: person,
    lnk: person,
    pky: person,
    idn: person,
    oap: application,
    bld: build,
    cre: credit,
    ssk: sshKey,
    ssa: sshAccess,
    whk: webhook,
  };
  // Callers choose the ids of rooms, messages and executions, which may look like those of another kind.
  const byName: readonly Finder[] = [room, message, port, template, execution];
  return async (caller, id, left) => {
    if (id.includes("/")) return await named(caller, id, left);
    const prefix = /^([a-z]{3,4})_/.exec(id)?.[1] ?? "";
    const known = Object.hasOwn(byPrefix, prefix) ? byPrefix[prefix] : undefined;
    for (const finder of new Set([...(known ? [known] : []), ...byName])) {
      const found = await finder(caller, id, left);
      if (found) return found;
    }
    return null;
  };
}

/** An organization's administrator has every scope. */
const needs = ({ scopes }: Caller, scope: Scope): boolean => scopes.includes(scope) || scopes.includes("org:admin");

/** Things outside of rooms are invisible to a key that is bound to rooms. */
const isOfAll = (caller: Caller): boolean => boundTo(caller) === null;

/** A caller that is bound to an agent sees no other agent's things. */
const isOwn = ({ agent_id }: Caller, agentId: string): boolean => agent_id === null || agent_id === agentId;

function splitOnce(id: string): [string, string] {
  const at = id.indexOf("/");
  return [id.slice(0, at), id.slice(at + 1)];
}
