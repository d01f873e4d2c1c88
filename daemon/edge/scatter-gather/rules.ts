/**
 * The operations that concern all hosts, and their merge rules. Any other operation without a room in its path is answered by the entry
 * host: from shared rows, such as organizations and keys, or about itself, such as health.
 */
import { orgAuditList, orgAuditSummary, orgAuditVerify, orgEvents } from "../../../shared/api/audit.ts";
import type { Operation } from "../../../shared/api/contract.ts";
import { locate } from "../../../shared/api/locate.ts";
import { roomOverview } from "../../../shared/api/overview/room-overview.ts";
import { topGet } from "../../../shared/api/overview/top.ts";
import { creditList } from "../../../shared/api/people/credits.ts";
import { roomList } from "../../../shared/api/rooms.ts";
import { orgSandboxList } from "../../../shared/api/sandboxes.ts";
import { usage } from "../../../shared/api/usage.ts";
import { webhookDeliveries, webhookGet, webhookList, webhookRedeliver } from "../../../shared/api/webhooks.ts";
import { listOfAudit, summaryOfAudit, verdictOfAll } from "./audit.ts";
import { ledgerOfAll } from "./credits.ts";
import { listOfRooms, overviewOfRooms } from "./rooms.ts";
import type { Merging, Rule } from "./rule.ts";
import { listOfSandboxes } from "./sandboxes.ts";
import { topOfAll } from "./top.ts";
import { usageOfAll } from "./usage.ts";
import { deliveriesOfAll, listOfWebhooks, webhookOfAll } from "./webhooks.ts";

/** By the operation's name. */
export const gathered: ReadonlyMap<string, Rule> = new Map([
  merged(roomList, listOfRooms),
  merged(roomOverview, overviewOfRooms),
  merged(usage, usageOfAll),
  merged(creditList, ledgerOfAll),
  merged(topGet, topOfAll),
  merged(orgSandboxList, listOfSandboxes),
  merged(orgAuditList, listOfAudit),
  merged(orgAuditSummary, summaryOfAudit),
  merged(orgAuditVerify, verdictOfAll),
  merged(webhookList, listOfWebhooks),
  merged(webhookGet, webhookOfAll),
  merged(webhookDeliveries, deliveriesOfAll),
  [webhookRedeliver.name, { finding: { absent: ["delivery_not_found"], patienceMs: 10_000 } }],
  [orgEvents.name, { following: true }],
  [locate.name, { finding: { absent: ["id_not_found"], patienceMs: 1000 } }],
]);

/** A rule is called with inputs and outputs of its own operation only. */
function merged<Op extends Operation>({ name }: Op, merging: Merging<Op>): [string, Rule] {
  return [name, { merging: merging as unknown as Merging<Operation> }];
}
