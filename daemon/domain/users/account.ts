/** Operations on a person's own account and sessions. */
import {
  type AccountRecord,
  accountGet,
  accountUpdate,
  type SessionRecord,
  sessionEnd,
  sessionList,
} from "../../../shared/api/people/account.ts";
import type { SessionId, UserId } from "../../../shared/ids.ts";
import { type Bound, bind, type Caller, type KeyCall } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { getOrg } from "../orgs/index.ts";
import { expiryOf, provedUntil } from "./sessions/sessions.ts";
import {
  changeSession,
  changeUser,
  endSessions,
  getMembership,
  getSession,
  getUser,
  listSessions,
  membershipsOf,
} from "./store.ts";
import type { SessionRow } from "./table.ts";

interface AccountDeps {
  database: Database;
  /** Called when sessions have ended, and the audit record is written. */
  onEnded(): void;
}

export function makeAccount({ database, onEnded }: AccountDeps): Bound[] {
  const { queries } = database;
  return [
    bind(accountGet, { run: ({ caller }) => ({ outcome: "ok", body: accountOf(queries, caller) }) }),

    bind(accountUpdate, {
      run: async (call, { name, org_id }) => {
        const { user_id, session_id } = whoIs(call);
        // Open streams of the session's previous organization end.
        if (org_id !== undefined) call.work.whenSettled(onEnded);
        const body = await database.commit((within) => {
          if (org_id !== undefined) {
            const membership = membershipsOf(within, user_id).find((each) => each.org_id === org_id);
            if (!membership) throw new ServiceError("org_not_found");
            changeSession(within, session_id, { org_id: membership.org_id });
          }
          if (name !== undefined) changeUser(within, user_id, { name });
          const changed = accountOf(within, call.caller);
          call.audit.details = { changed_name: name !== undefined, ...(org_id === undefined ? {} : { org_id }) };
          call.work.keep("ok", changed);
          return changed;
        });
        return { outcome: "ok", body };
      },
    }),

    bind(sessionList, {
      run: (call) => {
        const { user_id, session_id } = whoIs(call);
        const items = listSessions(queries, user_id).filter((row) => expiryOf(row) > now());
        return { outcome: "ok", body: { items: items.map((row) => sessionRecord(row, session_id)) } };
      },
    }),

    bind(sessionEnd, {
      find: (call, { session_id = "" }) => {
        const { user_id, session_id: own } = whoIs(call);
        if (session_id === "others") return { but: own };
        const requestedId = session_id === "this" ? own : session_id;
        const row = listSessions(queries, user_id).find((each) => each.session_id === requestedId);
        if (!row) throw new ServiceError("session_not_found");
        return row.session_id;
      },
      run: async (call, _, selection) => {
        const { user_id } = whoIs(call);
        call.work.whenSettled(onEnded);
        const body = await database.commit((within) => {
          const isOne = typeof selection === "string";
          if (isOne) changeSession(within, selection, { ended_at: now() });
          const sessions_ended = isOne ? 1 : endSessions(within, user_id, now(), selection);
          call.audit.details = isOne ? { session_id: selection } : { sessions_ended };
          call.work.keep("ok", { sessions_ended });
          return { sessions_ended };
        });
        return { outcome: "ok", body };
      },
    }),
  ];
}

/** Person and session of a call; the pipeline admits no other caller. */
export function whoIs({ caller }: Pick<KeyCall, "caller">): { user_id: UserId; session_id: SessionId } {
  if (!caller.session) throw new Error("a call on an account has no session");
  return { user_id: caller.key_id as string as UserId, session_id: caller.session.session_id };
}

/** Throws session_ended. */
export function requireUser(queries: Queries, userId: UserId) {
  const user = getUser(queries, userId);
  if (!user) throw new ServiceError("session_ended");
  return user;
}

function accountOf(queries: Queries, caller: Caller): AccountRecord {
  const { user_id, session_id } = whoIs({ caller });
  const { email, name, created_at, password_hash, verified_at } = requireUser(queries, user_id);
  const session = getSession(queries, session_id);
  if (!session) throw new ServiceError("session_ended");
  const until = provedUntil(session);
  const { org_id } = session;
  return {
    user_id,
    email,
    name,
    created_at,
    email_verified: verified_at !== null,
    has_password: password_hash !== null,
    org_id,
    role: getMembership(queries, org_id, user_id)?.role ?? "viewer",
    organizations: membershipsOf(queries, user_id).map((membership) => {
      const org = getOrg(queries, membership.org_id);
      const { org_id, role } = membership;
      return { org_id, name: org?.name ?? "", role, ending_at: org?.ending_at ?? null };
    }),
    session_id,
    proved_until: until > now() ? until : null,
  };
}

function sessionRecord(row: SessionRow, own: SessionId): SessionRecord {
  const { session_id, created_at, seen_at, ip, user_agent } = row;
  return { session_id, created_at, seen_at, expires_at: expiryOf(row), ip, user_agent, is_this: session_id === own };
}
