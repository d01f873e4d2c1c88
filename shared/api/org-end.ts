/** Interface of deleting an organization. */
import { Type } from "@sinclair/typebox";
import { fields, oneOf, operation } from "./contract.ts";
import { orgPath } from "./orgs.ts";

export const orgDelete = operation({
  name: "org_delete",
  extension: "account",
  method: "DELETE",
  path: "/v1/orgs/{org_id}",
  summary: "End an organization",
  description:
    "By an owner, and for good. At once nobody comes in any more: its keys end, its other members, and its invitations. Then its rooms end, with their sandboxes and drives, which goes on after the answer and after a restart. The owner who asked can look at its rooms until the last has gone. Its audit is kept as long as any, and so is what it has used.",
  access: "account",
  wantsProof: true,
  params: orgPath,
  query: fields({
    org_name: Type.String({
      maxLength: 128,
      description: "What the organization is called, so that no other is ended by mistake.",
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
