/** Interface of resolving an id: its type, and the path of its page. */
import { Type } from "@sinclair/typebox";
import { PLACE_TYPES } from "../places.ts";
import { fields, NONE, nullable, oneOf, operation } from "./contract.ts";

/** A room's and an agent's name with a slash between them are the longest. */
const MOST_CHARACTERS = 257;

export const locate = operation({
  name: "locate",
  extension: "locate",
  method: "GET",
  path: "/v1/locate/{id}",
  summary: "Find out what an id is",
  description:
    "Takes ids of rooms, sandboxes, snapshots, checkpoints, executions, terminals, messages, audit records, requests, keys, organizations, members, credit entries, SSH keys and SSH access, webhooks, a port's label, a template, ROOM/AGENT and ROOM/BARRIER; for a person who is signed in also those of their own sessions, passkeys, sign-ins elsewhere and applications, and of invitations. Only what the key may read is found. Executions, terminals, audit records and requests are looked for in the audit: of executions and terminals in its newest 20,000 records.",
  access: "key",
  params: fields({
    id: Type.String({ minLength: 1, maxLength: MOST_CHARACTERS, description: "Any id; a slash in it is written %2F." }),
  }),
  query: NONE,
  body: null,
  output: fields({
    id: Type.String({ description: "As it is called: of a room its room_id, of an agent its agent_id." }),
    type: oneOf(PLACE_TYPES),
    path: Type.String({ description: "Where its page is, beneath the address of the web." }),
    room_id: nullable(Type.String()),
    agent_id: nullable(Type.String()),
  }),
  outcomes: { ok: 200 },
  errors: ["id_not_found", "host_unreachable"],
  audit: "id.located",
});
