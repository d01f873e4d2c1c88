/** Public SSH keys as resources that end when the user or key that created them loses access. */
import { and, asc, eq } from "drizzle-orm";
import { sshKeyRemove } from "../../../shared/api/ssh.ts";
import { appendAudit } from "../audit/index.ts";
import { madeKind } from "./made.ts";
import { deleteSshKey, SSH_KEY_RULE } from "./ssh-keys-store.ts";
import { sshKeys } from "./table.ts";

const ACTOR = { type: "system", id: "ssh_keys", name: "ssh_keys" };

export const sshKeysMade = madeKind({
  name: "ssh_keys",
  table: sshKeys,
  takeOver: null,
  find: (queries, isOver, orgId) => {
    const { org_id, created_by_type: type, created_by_id: id, ssh_key_id } = sshKeys;
    const condition = and(eq(org_id, orgId), isOver({ org_id, type, id }, SSH_KEY_RULE));
    return queries.select().from(sshKeys).where(condition).orderBy(asc(ssh_key_id)).all();
  },
  idOf: ({ ssh_key_id }) => ssh_key_id,
  end: (queries, rows, at) => {
    for (const { org_id, ssh_key_id, fingerprint } of rows) {
      deleteSshKey(queries, org_id, ssh_key_id);
      appendAudit(queries, {
        ...{ event: sshKeyRemove.audit, outcome: "success", at, org_id, actor: ACTOR, source: "reconciler" },
        details: { ssh_key_id, fingerprint, reason: "maker_ended" },
      });
    }
  },
});
