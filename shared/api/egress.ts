/** Owns the interface of egress: where a sandbox may connect to, read and changed while it runs. */
import { Type } from "@sinclair/typebox";
import { fields, NONE, oneOf, operation } from "./contract.ts";
import { egressEntryList, sandboxPath } from "./sandboxes.ts";

const egress = fields({
  mode: oneOf(["none", "allowlist", "public"]),
  allowlist: Type.Array(Type.String()),
  revision: Type.Integer({ description: "Number of the list's current version; each change adds one." }),
  guest_net: Type.Boolean({
    description: "false: the sandbox was created with enable_guest_net false and has no network.",
  }),
  open_connections: Type.Integer(),
  connections: Type.Integer({ description: "All connections since the sandbox was created." }),
  sent_bytes: Type.Integer(),
  received_bytes: Type.Integer(),
});

export const egressGet = operation({
  name: "egress_get",
  extension: "egress",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/egress",
  summary: "Get a sandbox's egress list and its traffic",
  access: "sandboxes:read",
  params: sandboxPath,
  query: NONE,
  body: null,
  output: egress,
  outcomes: { ok: 200 },
  errors: ["room_not_found", "sandbox_not_found"],
  audit: "egress.read",
});

export const egressSet = operation({
  name: "egress_set",
  extension: "egress",
  method: "PUT",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/egress",
  summary: "Change where a sandbox may connect to",
  description:
    'Takes effect at once: open connections that the new list does not allow are closed. [] allows nothing, not even looking up names. ["*"] allows every public address.',
  access: "sandboxes:write",
  params: sandboxPath,
  query: NONE,
  body: fields({
    allowlist: egressEntryList,
    if_revision: Type.Optional(
      Type.Integer({ minimum: 1, description: "Only if the list has this revision; else 412." }),
    ),
  }),
  output: egress,
  outcomes: { ok: 200 },
  errors: [
    "room_not_found",
    "sandbox_not_found",
    "room_destroying",
    "invalid_state",
    "invalid_egress_entry",
    "precondition_failed",
  ],
  audit: "egress.changed",
  example: { body: { allowlist: ["deb.debian.org:443", "*.example.org"] } },
});
