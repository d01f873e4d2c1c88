/** Interface of the usage of organizations. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, nullable, oneOf, operation, record, timestamp } from "./contract.ts";
import { orgPath } from "./orgs.ts";
import { warnings } from "./rooms.ts";

export const GROUPINGS = ["room", "agent", "key", "day"] as const;
export type Grouping = (typeof GROUPINGS)[number];
/** Further groups are summed in `others`. */
export const MAX_GROUPS = 1000;

const seconds = (text: string) => Type.Number({ description: `${text}, to the millisecond.` });

const totals = record("UsageTotals", {
  sandbox_seconds: seconds("Time in which sandboxes were running; standby is not counted"),
  vcpu_seconds: seconds("The same for each vCPU"),
  memory_mib_seconds: seconds("The same for each MiB of memory"),
  exec_count: Type.Integer({ description: "Commands run by sandbox_exec and execution_start." }),
  messages: Type.Integer({ description: "Accepted messages, regardless of the recipients." }),
  egress_bytes: Type.Integer({ description: "Bytes that sandboxes sent to the outside." }),
  drive_byte_hours: Type.Integer({ description: "Bytes stored on the drives of existing rooms, times hours." }),
  build_seconds: seconds("Build time of its own templates, including failed builds"),
});
export type UsageTotals = Static<typeof totals>;

const caps = { soft_cap: Type.Integer(), hard_cap: Type.Integer() };

const group = fields({
  id: nullable(
    Type.String({
      description:
        "room_uid, agent_id, key_id or day; null for usage without one, such as a drive without an agent, and for usage beyond the number of groups that a day distinguishes.",
    }),
  ),
  name: nullable(Type.String({ description: "room_id, agent_id, the key's name or the day." })),
  totals,
});
export type UsageGroup = Static<typeof group>;

export const usage = operation({
  name: "usage",
  extension: "usage.group_by",
  method: "GET",
  path: "/v1/orgs/{org_id}/usage",
  summary: "Show the organization's usage",
  description:
    "For a calendar month in UTC, up to now. Sandboxes count for the key that created them, and drives for the key that created the room. Commands, messages and builds count for the key that made the call; those made by a sandbox count for the key that created it.",
  access: "usage:read",
  params: orgPath,
  query: fields({
    group_by: Type.Optional(oneOf(GROUPINGS, { description: "Adds groups, which add up to the totals." })),
    month: Type.Optional(
      Type.String({ pattern: "^\\d{4}-(0[1-9]|1[0-2])$", description: "As 2026-01; the current one if absent." }),
    ),
  }),
  body: null,
  output: fields({
    org_id: Type.String(),
    plan: Type.String(),
    entitled: Type.Boolean({ description: "Whether the plan allows anything at all." }),
    period: fields({ start_at: timestamp, end_at: timestamp }),
    rooms: fields({ active: Type.Integer(), ...caps }),
    sandboxes: fields({ active: Type.Integer(), ...caps }),
    memory_mib: fields({ allocated: Type.Integer(), ...caps }),
    disk_gib: fields({
      allocated: Type.Number({ description: "Maximum size of the disks of its sandboxes." }),
      ...caps,
    }),
    template_mib: fields({
      used: Type.Integer({ description: "Size of its own templates on the host's disk, rounded up." }),
      ...caps,
    }),
    drive: fields({
      used_bytes: Type.Integer({ description: "Of all its drives, including drives kept after their room's end." }),
      soft_cap_bytes: Type.Integer(),
      hard_cap_bytes: Type.Integer(),
    }),
    guest_cids: fields({
      in_use: Type.Integer({ description: "By the organization's sandboxes." }),
      total: Type.Integer({ description: "On the host, for all organizations." }),
    }),
    totals,
    groups: Type.Optional(
      Type.Array(group, {
        maxItems: MAX_GROUPS,
        description: "Ordered by sandbox time, largest first; days in order of date.",
      }),
    ),
    others: Type.Optional(nullable(fields({ group_count: Type.Integer(), totals }))),
    credits: fields({
      granted: nullable(Type.Number({ description: "Granted by the plan and the operator; null: no limit." })),
      used: Type.Number({ description: "At the prices of the time, since the organization was made." }),
      remaining: nullable(Type.Number()),
    }),
    can_create: fields({ room: Type.Boolean(), sandbox: Type.Boolean() }),
    warnings,
    as_of: timestamp,
  }),
  outcomes: { ok: 200 },
  errors: ["org_not_found"],
  audit: "usage.read",
});
export type UsageReport = Static<typeof usage.output>;
