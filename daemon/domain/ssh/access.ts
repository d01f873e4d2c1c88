/** Operations that create, list and revoke short-lived passwords for SSH. The tokens are shown once and never stored. */
import { randomBytes } from "node:crypto";
import {
  DEFAULT_ACCESS_SECONDS,
  MAX_SSH_ACCESSES,
  sshAccessCreate,
  sshAccessDelete,
  sshAccessList,
} from "../../../shared/api/ssh.ts";
import { newId } from "../../../shared/ids.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { requireActive } from "../../core/call/room-target.ts";
import { after, now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import { hashOfToken, TOKEN_PREFIX } from "./credentials.ts";
import type { Gateway, SshDeps } from "./deps.ts";
import type { Sessions } from "./sessions.ts";
import { deleteAccess, insertAccess, listAccesses } from "./store.ts";
import type { SshAccessRow } from "./table.ts";

const TOKEN_BYTES = 32;

export function makeAccessCalls(deps: SshDeps, sessions: Sessions): Bound[] {
  const { database, sandboxes, gateway, orgs } = deps;
  return [
    bind(sshAccessCreate, {
      find: (call, params) => sandboxes.find(call, params),
      run: async (call, input, { room, row }) => {
        const { caller, audit } = call;
        requireActive(room);
        const shown = requireGateway(gateway());
        const token = TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString("base64url");
        const created_at = now();
        const access: SshAccessRow = {
          access_id: newId("ssa"),
          sandbox_id: row.sandbox_id,
          token_sha256: hashOfToken(token),
          caller,
          username: `${row.agent_id}@${room.room_id}`,
          created_at,
          expires_at: after(created_at, input.expires_in_seconds ?? DEFAULT_ACCESS_SECONDS),
        };
        audit.details = { access_id: access.access_id, expires_at: access.expires_at };
        const body = { ...toRecord(access, shown), token };
        await database.commit((queries) => {
          if (listAccesses(queries, row.sandbox_id).length >= MAX_SSH_ACCESSES) {
            throw new ServiceError("quota_exceeded", {
              detail: `The sandbox has ${MAX_SSH_ACCESSES} short-lived passwords, which is the maximum. Delete one.`,
            });
          }
          insertAccess(queries, access);
          call.work.keep("created", body);
        });
        return { outcome: "created", body };
      },
    }),
    bind(sshAccessList, {
      find: (call, params) => sandboxes.find(call, params),
      run: (_, __, { row }) => {
        const shown = gateway() ?? OFF;
        const items = listAccesses(database.queries, row.sandbox_id).map((access) => ({
          ...toRecord(access, shown),
          sessions: sessions.countOf(access.access_id),
        }));
        return { outcome: "ok", body: { items, next_cursor: null } };
      },
    }),
    bind(sshAccessDelete, {
      find: (call, params) => sandboxes.find(call, params),
      run: async ({ audit }, { access_id }, { row }) => {
        audit.details = { access_id };
        const deleted = await database.commit((queries) => deleteAccess(queries, row.sandbox_id, access_id));
        if (!deleted) throw new ServiceError("key_not_found", { detail: `There is no ssh-access ${access_id}.` });
        orgs.holds.look();
        return { outcome: "ok", body: { access_id, state: "deleted" as const } };
      },
    }),
  ];
}

const OFF: Gateway = { host: "", port: 0, host_key: "", host_key_fingerprint: "" };

function requireGateway(gateway: Gateway | null): Gateway {
  if (gateway) return gateway;
  throw new ServiceError("invalid_state", {
    detail: "The SSH gateway is disabled on this host.",
    hint: "The operator enables it with ssh.listen.",
  });
}

function toRecord({ access_id, username, created_at, expires_at }: SshAccessRow, gateway: Gateway) {
  const { host, port, host_key_fingerprint } = gateway;
  const ssh_command = `ssh -p ${port} ${username}@${host}`;
  return { access_id, host, port, username, ssh_command, host_key_fingerprint, created_at, expires_at };
}
