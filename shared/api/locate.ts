/** Interface of resolving an id: its type, and the path of its page. */
import { Type } from "@sinclair/typebox";
import { PLACE_TYPES } from "../places.ts";
import { fields, NONE, nullable, oneOf, operation } from "./contract.ts";

/** Longest form: the names of a room and an agent, separated by a slash. */
const MAX_CHARACTERS = 257;

export const locate = operation({
  name: "locate",
  extension: "locate",
  method: "GET",
  path: "/v1/locate/{id}",
  summary: "Find the resource with an id",
  description:
    "Takes ids of rooms, sandboxes, snapshots, checkpoints, executions, terminals, messages, audit records, requests, keys, organizations, members, credit entries, SSH keys and SSH access, webhooks, a port's label, a template, ROOM/AGENT and ROOM/BARRIER; for a signed-in person also of their own sessions, passkeys, external accounts and applications, and of invitations. Only resources that the key may read are found. Executions, terminals, audit records and requests are searched in the audit: executions and terminals in its newest 20,000 records.",
  access: "key",
  params: fields({
    id: Type.String({ minLength: 1, maxLength: MAX_CHARACTERS, description: "Any id; a slash in it is written %2F." }),
  }),
  query: NONE,
  body: null,
  output: fields({
    id: Type.String({ description: "Its public name: of a room its room_id, of an agent its agent_id." }),
    type: oneOf(PLACE_TYPES),
    path: Type.String({ description: "Path of its page, relative to the URL of the web pages." }),
    room_id: nullable(Type.String()),
    agent_id: nullable(Type.String()),
  }),
  outcomes: { ok: 200 },
  errors: ["id_not_found", "host_unreachable"],
  audit: "id.located",
});
