/** Interface of the usage of organizations. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, nullable, oneOf, operation, record, timestamp } from "./contract.ts";
import { orgPath } from "./orgs.ts";
import { warnings } from "./rooms.ts";

export const GROUPINGS = ["room", "agent", "key", "day"] as const;
export type Grouping = (typeof GROUPINGS)[number];
/** The rest is added up in `others`. */
export const MAX_GROUPS = 1000;

const seconds = (what: string) => Type.Number({ description: `${what}, to the millisecond.` });

const totals = record("UsageTotals", {
  sandbox_seconds: seconds("Time in which sandboxes were running; standby is not counted"),
  vcpu_seconds: seconds("The same for each vCPU"),
  memory_mib_seconds: seconds("The same for each MiB of memory"),
  exec_count: Type.Integer({ description: "Commands run by sandbox_exec and execution_start." }),
  messages: Type.Integer({ description: "Messages that were accepted, whoever receives them." }),
  egress_bytes: Type.Integer({ description: "What sandboxes sent to the outside." }),
  drive_byte_hours: Type.Integer({ description: "What was on the drives of rooms that exist, and for how long." }),
  build_seconds: seconds("Time in which its own templates were being built, also where that failed"),
});
export type UsageTotals = Static<typeof totals>;

const caps = { soft_cap: Type.Integer(), hard_cap: Type.Integer() };

const group = fields({
  id: nullable(
    Type.String({
      description:
        "room_uid, agent_id, key_id or day; null for what belongs to none, as a drive to no agent, or to more in a day than are told apart.",
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
  summary: "What the organization has used",
  description:
    "For a calendar month in UTC, up to now. Sandboxes count for the key that created them, and drives for the key that created the room. Commands, messages and builds count for the key that made the call; those that a sandbox makes count for the key that created it.",
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
      allocated: Type.Number({ description: "What the disks of its sandboxes may grow to." }),
      ...caps,
    }),
    template_mib: fields({
      used: Type.Integer({ description: "What its own templates take on the host's disk, rounded up." }),
      ...caps,
    }),
    drive: fields({
      used_bytes: Type.Integer({ description: "Of all its drives, also those that are kept after their room's end." }),
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
      used: Type.Number({ description: "By the price table of the time, since the organization was made." }),
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
