/** Operations with which a person authorizes applications, lists the authorized ones, and signs them out. */

import type { Scope } from "../../../shared/api/contract.ts";
import { deviceDecide, type GrantRecord, grantCreate, grantEnd, grantList } from "../../../shared/api/grants.ts";
import type { UserId } from "../../../shared/ids.ts";
import { type Bound, bind, type Caller, type KeyCall } from "../../core/call/operation.ts";
import { after, now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { getKey, grantBy, isGood, type KeyRow, newKey } from "../orgs/index.ts";
import { requireSession } from "../users/index.ts";
import { backTo, readAuthorizationRequest } from "./authorization-request.ts";
import type { Asker } from "./client-metadata.ts";
import type { Clients } from "./clients.ts";
import type { OAuthDeps } from "./deps.ts";
import type { Client } from "./metadata.ts";
import { placeOf } from "./redirects.ts";
import { Refusal } from "./refusal.ts";
import { makeSecret, readUserCode, sha256 } from "./secrets.ts";
import { decideDevice, dropGrant, grantsOf, insertGrant, openDevice } from "./store.ts";
import type { GrantRow } from "./table.ts";
import { CODE_SECONDS } from "./tokens.ts";

/** Maximum number of grants of one person. */
const MAX_GRANTS = 100;

interface Narrowing {
  scopes?: readonly Scope[] | undefined;
  room_ids?: readonly string[] | undefined;
  expires_in_seconds?: number | undefined;
}

type Deps = Pick<OAuthDeps, "database" | "changes" | "orgs" | "url"> & { clients: Clients };

export function makeGrants({ database, changes, orgs, url, clients }: Deps): Bound[] {
  const { queries } = database;
  const onEnded = () => orgs.holds.look();

  const list = ({ caller }: KeyCall, within = queries): { grant: GrantRow; key: KeyRow }[] =>
    grantsOf(within, userOf(caller)).flatMap((grant) => {
      const key = getKey(within, grant.key_id);
      return key && isGood(key) ? [{ grant, key: orgs.withUse(key) }] : [];
    });

  /**
   * Within the transaction that adds a grant: otherwise one member could use up the organization's limit on keys. Throws quota_exceeded.
   */
  const requireFew = (within: Queries, call: KeyCall) => {
    if (list(call, within).length < MAX_GRANTS) return;
    throw new ServiceError("quota_exceeded", {
      detail: `At most ${MAX_GRANTS} applications can be authorized by one user.`,
      hint: "Revoke some of them on the Applications page.",
    });
  };

  return [
    bind(grantList, {
      run: (call) => ({ outcome: "ok", body: { items: list(call).map(toRecord) } }),
    }),

    bind(grantCreate, {
      run: async (call, { request, ...narrowing }) => {
        const asking = await readAuthorizationRequest(
          new URLSearchParams(request),
          clients,
          url(),
          askerOf(call),
        ).catch(told);
        const { client, redirect_uri, audience, code_challenge } = asking;
        const row = keyOf(call.caller, client, narrowed(call.caller, asking.scopes, narrowing));
        const code = makeSecret("oac-");
        const body = await changes.addKey(row, (within) => {
          requireStillIn(within, call.caller);
          requireFew(within, call);
          insertGrant(within, {
            key_id: row.key_id,
            user_id: userOf(call.caller),
            client_id: client.client_id,
            redirect_uri,
            audience,
            code_sha256: sha256(code),
            code_challenge,
            code_expires_at: after(now(), CODE_SECONDS),
            code_used_at: null,
          });
          call.audit.details = detailsOf(row, client, placeOf(redirect_uri));
          const made = { grant_id: row.key_id, location: backTo(asking, url(), { code }) };
          call.work.keep("created", made);
          return made;
        });
        return { outcome: "created", body };
      },
    }),

    bind(deviceDecide, {
      run: async (call, { user_code, allow, ...narrowing }) => {
        const typed = readUserCode(user_code);
        const device = openDevice(queries, typed, now());
        if (!device) throw new ServiceError("device_not_found");
        const client = await clients.find(device.client_id, askerOf(call)).catch(told);
        const decided = { client_name: client.name, allowed: allow };
        if (!allow) {
          await database.commit((within) => {
            if (!decideDevice(within, typed, allow, null)) throw new ServiceError("device_not_found");
            call.audit.details = { client_id: client.client_id, allowed: false };
            call.work.keep("ok", decided);
          });
          return { outcome: "ok", body: decided };
        }
        const row = keyOf(call.caller, client, narrowed(call.caller, device.scopes, narrowing));
        await changes.addKey(row, (within) => {
          requireStillIn(within, call.caller);
          requireFew(within, call);
          // Another call may have decided since.
          if (!decideDevice(within, typed, allow, row.key_id)) throw new ServiceError("device_not_found");
          insertGrant(within, {
            key_id: row.key_id,
            user_id: userOf(call.caller),
            client_id: client.client_id,
            redirect_uri: null,
            audience: device.audience,
            code_sha256: null,
            code_challenge: null,
            code_expires_at: null,
            code_used_at: null,
          });
          call.audit.details = { ...detailsOf(row, client, null), allowed: true };
          call.work.keep("ok", decided);
        });
        return { outcome: "ok", body: decided };
      },
    }),

    bind(grantEnd, {
      find: (call, { grant_id = "" }) => {
        const found = list(call).find(({ key }) => key.key_id === grant_id);
        if (!found) throw new ServiceError("grant_not_found");
        return found.key;
      },
      run: async (call, _input, { key_id, name }) => {
        call.work.whenSettled(onEnded);
        const ended = { grant_id: key_id };
        await changes.revokeKey(key_id, (within) => {
          dropGrant(within, key_id);
          call.audit.details = { ...ended, name };
          call.work.keep("ok", ended);
        });
        return { outcome: "ok", body: ended };
      },
    }),
  ];
}

/** The pipeline admits only signed-in people here. */
const userOf = ({ key_id }: Caller): UserId => key_id as string as UserId;

/** A session that ended while an application's client metadata document was read authorizes nothing. Throws session_ended. */
function requireStillIn(queries: Queries, { session }: Caller): void {
  if (!session) throw new ServiceError("session_ended");
  requireSession(queries, session.session_id);
}

/** Converts a Refusal to a normal API error, since a person reads it. */
function told(error: unknown): never {
  if (!(error instanceof Refusal)) throw error;
  throw new ServiceError("invalid_body", { detail: error.description, details: { error: error.error } });
}

/** A signed-in person's look-ups are limited by the rate of calls alone. */
const askerOf = ({ caller }: KeyCall): Asker => ({ name: userOf(caller), requireFetch: () => {} });

/** Granted subset of the requested scopes: within the person's role and the person's selection. Throws scope_escalation. */
function narrowed(
  caller: Caller,
  requestedScopes: readonly Scope[],
  { scopes, room_ids, expires_in_seconds }: Narrowing,
) {
  const gives = caller.session?.gives ?? [];
  const given = requestedScopes.filter((scope) => gives.includes(scope) && (scopes?.includes(scope) ?? true));
  if (given.length === 0) {
    throw new ServiceError("scope_escalation", {
      detail: "None of the requested scopes can be granted with your role and selection.",
      details: { scopes: requestedScopes },
    });
  }
  const expires_at = expires_in_seconds === undefined ? undefined : after(now(), expires_in_seconds);
  return grantBy(caller, { scopes: given, room_ids: room_ids && [...room_ids], expires_at });
}

function keyOf(caller: Caller, { name }: Client, grant: ReturnType<typeof grantBy>): KeyRow {
  const maker = { type: "user", id: caller.key_id };
  const { row } = newKey({ ...grant, org_id: caller.org_id, kind: "oauth", name, maker });
  return { ...row, key_prefix: "oat-" };
}

const detailsOf = (
  { key_id, name, scopes, room_ids, expires_at }: KeyRow,
  { client_id }: Client,
  place: string | null,
) => ({
  grant_id: key_id,
  client_id,
  name,
  redirect_host: place,
  scopes,
  room_ids,
  expires_at,
});

export function toRecord({ grant, key }: { grant: GrantRow; key: KeyRow }): GrantRecord {
  const { name, org_id, scopes, room_ids, created_at, expires_at, last_used_at } = key;
  return {
    grant_id: key.key_id,
    client_id: grant.client_id,
    client_name: name,
    redirect_host: grant.redirect_uri === null ? null : placeOf(grant.redirect_uri),
    org_id: org_id ?? "",
    scopes,
    room_ids,
    created_at,
    expires_at,
    last_used_at,
  };
}
