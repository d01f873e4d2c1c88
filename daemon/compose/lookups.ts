/** Lookup of each kind of resource by its id alone: each noun searches its own rows, and finds only those of the caller's organization. */
import { type BuildId, NAME_PATTERN, type RoomUid, type UserId } from "../../shared/ids.ts";
import type { Caller } from "../core/call/operation.ts";
import { findAgent } from "../domain/agents/index.ts";
import { locateRecord } from "../domain/audit/index.ts";
import { findBarrier } from "../domain/barriers/index.ts";
import { locateMessage } from "../domain/fabric/index.ts";
import { hasGrant } from "../domain/oauth/index.ts";
import { getKeyOf, isEntryOf, isKeySeen, isSshKeyOf } from "../domain/orgs/index.ts";
import { locateLabel } from "../domain/ports/index.ts";
import { getCheckpoint } from "../domain/rooms/index.ts";
import { locateSandbox, locateSnapshot, type makeAgentLookup } from "../domain/sandboxes/index.ts";
import type { Lookups } from "../domain/service/index.ts";
import { locateAccess } from "../domain/ssh/index.ts";
import { getBuild } from "../domain/templates/store.ts";
import { locateOfPeople } from "../domain/users/index.ts";
import type { Webhooks } from "../domain/webhooks/index.ts";
import type { Base } from "./base.ts";

export function composeLookups(
  { database, reads, finder, templates }: Pick<Base, "database" | "reads" | "finder" | "templates">,
  { agentOf }: Pick<ReturnType<typeof makeAgentLookup>, "agentOf">,
  webhooks: Pick<Webhooks, "has">,
): Lookups {
  const { queries } = database;
  const roomsOf = ({ org_id, room_ids }: Caller): RoomUid[] | null =>
    room_ids?.flatMap((roomId) => finder.lookup(org_id, roomId)?.room_uid ?? []) ?? null;
  return {
    room: finder.lookupSeen,
    roomOf: finder.lookupUid,
    roomsOf,
    sandbox: ({ org_id }, sandboxId) => locateSandbox(queries, org_id, sandboxId),
    snapshot: ({ org_id }, snapshotId) => locateSnapshot(queries, org_id, snapshotId),
    checkpoint: ({ org_id }, checkpointId) => getCheckpoint(queries, org_id, checkpointId),
    isAgent: (roomUid, agentId) =>
      agentOf(roomUid as RoomUid, agentId) !== null || findAgent(queries, roomUid as RoomUid, agentId) !== undefined,
    isBarrier: (roomUid, barrierId) => findBarrier(queries, roomUid as RoomUid, barrierId) !== undefined,
    message: (caller, messageId) => {
      const found = locateMessage(queries, caller.org_id, roomsOf(caller), messageId);
      return found && { room_uid: found.room_uid, parties: [found.source, ...found.recipients] };
    },
    port: ({ org_id }, label) => locateLabel(queries, org_id, label),
    isKey: (caller, keyId) => {
      const row = getKeyOf(queries, caller.org_id, keyId);
      if (!row || row.kind === "oauth" || row.revoked_at !== null) return false;
      const seesOthers = caller.session !== undefined || caller.scopes.some((each) => SEES_KEYS.includes(each));
      return row.key_id === caller.key_id || (seesOthers && isKeySeen(queries, caller, row));
    },
    ofPeople: (caller, id) => locateOfPeople(queries, caller, id),
    isApplication: ({ session, key_id }, id) =>
      session !== undefined && hasGrant(queries, key_id as string as UserId, id),
    isCredit: ({ org_id }, entryId) => isEntryOf(queries, org_id, entryId),
    isWebhook: ({ org_id }, webhookId) => webhooks.has(org_id, webhookId),
    isSshKey: ({ org_id }, sshKeyId) => isSshKeyOf(queries, org_id, sshKeyId),
    sshAccess: ({ org_id }, accessId) => locateAccess(queries, org_id, accessId),
    isTemplate: ({ org_id }, templateId) => NAME.test(templateId) && templates.get(templateId, org_id) !== null,
    isBuild: ({ org_id }, buildId) => getBuild(queries, org_id, buildId as BuildId) !== undefined,
    record: (within, key, left) => locateRecord(reads, within, key, left),
  };
}

/** Template directories are named after templates. */
const NAME = new RegExp(NAME_PATTERN);
const SEES_KEYS: readonly string[] = ["keys:write", "org:admin"];
