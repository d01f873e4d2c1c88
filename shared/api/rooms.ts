/** Interface of rooms. */
import { type Static, Type } from "@sinclair/typebox";
import { NAME_PATTERN } from "../ids.ts";
import { fields, NONE, nullable, oneOf, operation, page, pageQuery, record, timestamp } from "./contract.ts";
import { hostLabels } from "./hosts.ts";

export const roomId = Type.String({
  pattern: NAME_PATTERN,
  description: "Name of the room, unique among the organization's active rooms.",
  examples: ["build-42"],
});

/** The caller's own key-value pairs, by which lists can be filtered. */
export const labels = Type.Record(
  Type.String({ pattern: "^[A-Za-z0-9][\\w./-]{0,62}$" }),
  Type.String({ maxLength: 256 }),
  {
    additionalProperties: false,
    maxProperties: 64,
    description: "Up to 64 labels of the caller's own.",
  },
);

/** A filter `label=key:value`. */
export const labelFilter = Type.Optional(
  Type.String({ pattern: "^[^:]+:.*$", maxLength: 512, description: "Only those with this label, as key:value." }),
);

export const status = fields({
  reason: Type.String({ description: "One word for programs." }),
  message: Type.String({ description: "One sentence for a person." }),
  last_transition_at: timestamp,
});

export const warnings = Type.Array(Type.String(), { description: "Sentences for a person." });
/** For responses that usually have no warnings: then the field is absent. */
export const anyWarnings = Type.Optional(warnings);

export const actor = fields({ type: Type.String(), id: Type.String() });

export const ROOM_STATES = ["active", "destroying", "destroyed"] as const;
export type RoomState = (typeof ROOM_STATES)[number];

export const roomHost = Type.String({
  description: "Name of the host that it is on, as X-Roomd-Host of its answers.",
});

export const room = record("Room", {
  room_id: roomId,
  room_uid: Type.String(),
  org_id: Type.String(),
  host: roomHost,
  state: oneOf(ROOM_STATES),
  status,
  labels,
  sandbox_count: Type.Integer(),
  drive: fields({
    used_bytes: Type.Integer(),
    limit_bytes: Type.Integer(),
    file_count: Type.Integer({
      description: "Number of files. If the kernel enforces the quota (defaults.drive_quota): entries of any kind.",
    }),
  }),
  created_at: timestamp,
  updated_at: timestamp,
  expires_at: nullable(timestamp),
  created_by: actor,
  warnings,
});
export type RoomRecord = Static<typeof room>;

export const roomPath = fields({ room_id: roomId });

export const roomCreate = operation({
  name: "room_create",
  method: "POST",
  path: "/v1/rooms",
  summary: "Create a room",
  description: "A room holds one run: its sandboxes, its messages and its shared drive.",
  access: "rooms:write",
  params: NONE,
  query: NONE,
  body: fields({
    room_id: roomId,
    labels: Type.Optional(labels),
    ttl_seconds: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 31_536_000, description: "The room is destroyed after this time." }),
    ),
    host: Type.Optional(
      Type.String({
        pattern: NAME_PATTERN,
        description: "Target host, if there are several; else a host with free memory.",
      }),
    ),
    host_labels: Type.Optional({ ...hostLabels, description: "Only a host that has all of these labels." }),
  }),
  output: room,
  outcomes: { created: 201 },
  location: "/v1/rooms/{room_id}",
  errors: [
    "room_id_in_use",
    "quota_exceeded",
    "validation_failed",
    "insufficient_capacity",
    "host_unreachable",
    "cluster_unavailable",
  ],
  audit: "room.created",
  example: { body: { room_id: "build-42", labels: { team: "search" } } },
});

/** Which rooms a list has. */
export const roomQuery = fields({
  state: Type.Optional(oneOf(ROOM_STATES, { description: "Only those in this state." })),
  label: labelFilter,
  host: Type.Optional(Type.String({ pattern: NAME_PATTERN, description: "Only those on this one of several hosts." })),
  order: Type.Optional(oneOf(["asc", "desc"], { description: "By creation. asc, the oldest first, if absent." })),
  ...pageQuery,
});

export const roomList = operation({
  name: "room_list",
  method: "GET",
  path: "/v1/rooms",
  summary: "List rooms",
  access: "rooms:read",
  params: NONE,
  query: roomQuery,
  body: null,
  output: fields({ ...page(room).properties, org_id: Type.String(), warnings: anyWarnings }),
  outcomes: { ok: 200 },
  errors: ["invalid_cursor"],
  audit: "room.listed",
});

export const roomGet = operation({
  name: "room_get",
  method: "GET",
  path: "/v1/rooms/{room_id}",
  summary: "Get a room",
  access: "rooms:read",
  params: roomPath,
  query: NONE,
  body: null,
  output: room,
  outcomes: { ok: 200 },
  errors: ["room_not_found"],
  audit: "room.read",
});

export const roomUpdate = operation({
  name: "room_update",
  extension: "room.update",
  method: "PATCH",
  path: "/v1/rooms/{room_id}",
  summary: "Change a room's labels and end",
  description: "Absent fields stay as they are.",
  access: "rooms:write",
  params: roomPath,
  query: NONE,
  body: fields({
    labels: Type.Optional(labels),
    expires_in_seconds: Type.Optional(
      nullable(
        Type.Integer({
          minimum: 1,
          maximum: 31_536_000,
          description: "Destroys the room this long after now; null: never.",
        }),
      ),
    ),
  }),
  output: room,
  outcomes: { ok: 200 },
  errors: ["room_not_found", "room_destroying"],
  onFullDisk: true,
  audit: "room.updated",
  example: { body: { expires_in_seconds: 3600 } },
});

export const roomDestroy = operation({
  name: "room_destroy",
  method: "DELETE",
  path: "/v1/rooms/{room_id}",
  summary: "Destroy a room",
  description: "Ends its sandboxes and retires its drive, which is kept for a day unless drive=delete is given.",
  access: "rooms:write",
  params: roomPath,
  query: fields({
    drive: Type.Optional(oneOf(["retain", "delete"], { description: "Keep or delete the drive." })),
  }),
  body: null,
  output: fields({
    room_id: roomId,
    room_uid: Type.String(),
    state: oneOf(["destroying", "destroyed"]),
    sandboxes_destroyed: Type.Array(Type.String()),
    drive: fields({ state: oneOf(["retained", "deleted"]), until_at: nullable(timestamp) }),
    duration_ms: Type.Integer(),
  }),
  outcomes: { destroyed: 200, destroying: 202 },
  errors: ["room_not_found", "not_ready"],
  audit: "room.destroyed",
});
