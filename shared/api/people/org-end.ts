/** Interface of deleting an organization. */
import { Type } from "@sinclair/typebox";
import { fields, oneOf, operation } from "../contract.ts";
import { orgPath } from "../orgs.ts";

export const orgDelete = operation({
  name: "org_delete",
  extension: "account",
  method: "DELETE",
  path: "/v1/orgs/{org_id}",
  summary: "End an organization",
  description:
    "By an owner, permanently. Access ends immediately: its keys are revoked, its other members removed and its invitations withdrawn. Then its rooms end, with their sandboxes and drives, which continues after the answer and after a restart. The calling owner can view its rooms until the last is gone. Its audit and usage are kept as long as any other.",
  access: "account",
  wantsProof: true,
  params: orgPath,
  query: fields({
    org_name: Type.String({
      maxLength: 128,
      description: "The organization's name, as confirmation.",
    }),
  }),
  body: null,
  output: fields({
    org_id: Type.String(),
    state: oneOf(["ending"]),
    rooms_left: Type.Integer({ description: "Rooms that have not ended yet." }),
    keys_revoked: Type.Integer(),
    members_removed: Type.Integer(),
  }),
  outcomes: { ending: 202 },
  errors: ["org_not_found", "insufficient_scope", "validation_failed"],
  audit: "org.ending",
});
