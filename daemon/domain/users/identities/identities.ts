/**
 * Sign-in with external accounts, and linking them. An account is matched by issuer and subject alone: an address does not prove which user
 * here owns it, so an existing user links the account while signed in.
 */
import {
  type IdentityRecord,
  identityBegin,
  identityList,
  identityRemove,
} from "../../../../shared/api/people/identities.ts";
import { MAX_MEMBERS } from "../../../../shared/api/people/members.ts";
import { type IdentityId, newId, type OrgId, type SessionId, type UserId } from "../../../../shared/ids.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { now } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { getOrg, type OrgChanges } from "../../orgs/index.ts";
import { whoIs } from "../account.ts";
import { requirePerson } from "../person.ts";
import { type RequestSource, record } from "../record.ts";
import { begin, type SignedIn } from "../sessions/session-start.ts";
import { requireProof, requireSession } from "../sessions/sessions.ts";
import type { Challenges, Given } from "../sign-in/challenges.ts";
import { requireWayLeft, sameIssuer } from "../sign-in/sign-in-methods.ts";
import { addUser } from "../sign-up/add-user.ts";
import { countMembers, getMembership, getUser, insertMembership, membershipsOf, userByEmail } from "../store.ts";
import type { IdentityRow, UserRow } from "../table.ts";
import { ownerOfEmail, releaseEmail } from "./email-ownership.ts";
import { follow, type GivenRole, roleOf } from "./groups.ts";
import {
  changeIdentity,
  deleteIdentity,
  identityBySubject,
  insertIdentity,
  listIdentities,
} from "./identities-store.ts";
import type { Departure, OidcClient, Vouched } from "./oidc.ts";
import { byAddress, hasDeparted, noteDeparted } from "./tombstone.ts";

/** Path that the browser returns to. */
export const RETURN_PATH = "/signin/return";
const MAX_IDENTITIES = 5;

const signInOf = (visitor: string): Given => ({ purpose: "sign in elsewhere", to: visitor });
const linkOf = (sessionId: SessionId): Given => ({ purpose: "link elsewhere", to: sessionId });

interface IdentityDeps {
  database: Database;
  changes: OrgChanges;
  /** Called when sessions and keys have ended, and the audit record is written. */
  onEnded(): void;
  challenges: Challenges;
  /** Null if it is not configured. */
  upstream: OidcClient | null;
  url(): string;
  /** Name at which passkeys are valid. */
  rpId(): string | null;
  /** Whether strangers can create accounts here: then an address may be claimed by a user that does not own it. */
  isOpen: boolean;
}

export class Identities {
  readonly #deps: IdentityDeps;

  constructor(deps: IdentityDeps) {
    this.#deps = deps;
  }

  /** The button's label; null without a button. */
  get name(): string | null {
    return this.#deps.upstream?.plan.name ?? null;
  }

  /** URL to send the browser to for sign-in. Throws invalid_state, upstream_failed. */
  leave(visitor: string): Promise<string> {
    return this.#leave(signInOf(visitor));
  }

  /** Throws sign_in_failed, upstream_failed, rate_limited. */
  async signIn(answer: URLSearchParams, requestSource: RequestSource): Promise<SignedIn> {
    const { database } = this.#deps;
    const vouched = await this.#arrive(answer, requestSource.visitor === null ? null : signInOf(requestSource.visitor));
    const role = this.#roleOf(vouched);
    await this.#follow(vouched, role);
    return await database.commit((queries) => {
      const there = identityBySubject(queries, vouched.issuer, vouched.subject);
      const user = there ? getUser(queries, there.user_id) : this.#welcome(queries, vouched, role, requestSource);
      if (!user || user.disabled_at !== null)
        throw new ServiceError("sign_in_failed", { detail: "Your account may not sign in to this service." });
      const org = membershipsOf(queries, user.user_id)[0]?.org_id;
      if (org === undefined) {
        throw new ServiceError("sign_in_failed", { detail: "You no longer belong to an organization." });
      }
      if (there) changeIdentity(queries, there.identity_id, { last_used_at: now() });
      return begin(queries, user, org, requestSource, "identity");
    });
  }

  /** Whether the response belongs to a signed-in user that links an account. */
  isLink(answer: URLSearchParams, sessionId: SessionId): boolean {
    return this.#deps.challenges.isOpen(answer.get("state") ?? "", linkOf(sessionId));
  }

  /** Throws proof_required, already_exists, quota_exceeded, sign_in_failed, upstream_failed, rate_limited. */
  async link(answer: URLSearchParams, sessionId: SessionId, requestSource: RequestSource): Promise<void> {
    const vouched = await this.#arrive(answer, linkOf(sessionId));
    await this.#deps.database.commit((queries) => {
      requireProof(queries, sessionId);
      const { user_id, name, org_id } = requireSession(queries, sessionId);
      if (listIdentities(queries, user_id).length >= MAX_IDENTITIES) {
        throw new ServiceError("quota_exceeded", { detail: `A user may link ${MAX_IDENTITIES} accounts.` });
      }
      if (identityBySubject(queries, vouched.issuer, vouched.subject)) {
        throw new ServiceError("already_exists", {
          detail: "The account is already linked to a user of this service.",
        });
      }
      const { identity_id } = addIdentity(queries, vouched, user_id);
      record(queries, "auth.identity_linked", { user_id, name }, org_id, requestSource, { identity_id });
    });
  }

  operations(): Bound[] {
    const { database, upstream, rpId } = this.#deps;
    const { queries } = database;
    const issuer = upstream?.plan.issuer ?? null;
    const isUsable = (row: IdentityRow) => issuer !== null && sameIssuer(row.issuer, issuer);
    return [
      bind(identityList, {
        run: (call) => {
          const items = listIdentities(queries, whoIs(call).user_id).map((row) => toRecord(row, isUsable(row)));
          return { outcome: "ok", body: { items } };
        },
      }),

      bind(identityBegin, {
        run: async (call) => ({ outcome: "ok", body: { url: await this.#leave(linkOf(whoIs(call).session_id)) } }),
      }),

      bind(identityRemove, {
        find: (call, { identity_id = "" }) => {
          const row = listIdentities(queries, whoIs(call).user_id).find((each) => each.identity_id === identity_id);
          if (!row) throw new ServiceError("identity_not_found");
          return row.identity_id;
        },
        run: async (call, _input, identity_id) => {
          const { user_id } = whoIs(call);
          const body = await database.commit((within) => {
            noteUnlinked(within, user_id, identity_id);
            deleteIdentity(within, identity_id);
            requireWayLeft(within, user_id, { rp_id: rpId(), issuer });
            call.audit.details = { identity_id };
            const removed = { identity_id, removed: true };
            call.work.keep("ok", removed);
            return removed;
          });
          return { outcome: "ok", body };
        },
      }),
    ];
  }

  async #leave(given: Given): Promise<string> {
    const { upstream, challenges } = this.#deps;
    if (!upstream) {
      throw new ServiceError("invalid_state", { detail: "No identity provider is configured (oidc.issuer)." });
    }
    return await upstream.leave(this.#departure(challenges.make(given)));
  }

  /** Throws sign_in_failed, upstream_failed, rate_limited. */
  async #arrive(answer: URLSearchParams, given: Given | null): Promise<Vouched> {
    const { upstream, challenges } = this.#deps;
    const state = answer.get("state") ?? "";
    if (!upstream || !given || !challenges.isOpen(state, given)) throw tooLate();
    const vouched = await upstream.arrive(answer, this.#departure(state));
    // Only correctly answered challenges are stored: the issuer accepts its code once.
    if (!challenges.answer(state)) throw tooLate();
    const domain = vouched.email?.split("@").at(-1) ?? "";
    const { domains } = upstream.plan;
    if (domains.length > 0 && !domains.includes(domain)) {
      throw new ServiceError("sign_in_failed", {
        detail:
          "Sign-in is restricted to certain e-mail domains, and the account's verified address is not in one of them.",
      });
    }
    return vouched;
  }

  #departure(state: string): Departure {
    const { challenges, url } = this.#deps;
    return {
      state,
      verifier: challenges.derive(state, "verifier"),
      nonce: challenges.derive(state, "nonce"),
      redirect_uri: `${url()}${RETURN_PATH}`,
    };
  }

  /** Role of the account in oidc.org by the configuration; null: no role. */
  #roleOf({ groups }: Vouched): GivenRole | null {
    const welcome = this.#deps.upstream?.plan.welcome;
    return welcome ? (roleOf(welcome.groups, groups ?? []) ?? welcome.role) : null;
  }

  /** Updates a member's role by the account's groups, if they give one. Throws sign_in_failed. */
  async #follow({ issuer, subject, groups }: Vouched, role: GivenRole | null): Promise<void> {
    const { database, changes, upstream, onEnded } = this.#deps;
    const welcome = upstream?.plan.welcome;
    const there = identityBySubject(database.queries, issuer, subject);
    // If the issuer reports no groups, no role is changed.
    if (!welcome || welcome.groups.size === 0 || groups === null || !there) return;
    const org_id = welcome.org_id as OrgId;
    const { user_id } = there;
    const before = getMembership(database.queries, org_id, user_id)?.role;
    if (before === undefined || before === "owner" || before === role) return;
    if (role === null)
      throw new ServiceError("sign_in_failed", { detail: "None of your groups may sign in to this service." });
    await follow(changes, { org_id, user_id, before, role });
    onEnded();
  }

  /** A new user: made a member if the configuration allows it. Throws sign_in_failed, already_exists, quota_exceeded. */
  #welcome(queries: Queries, vouched: Vouched, role: GivenRole | null, requestSource: RequestSource): UserRow {
    const welcome = this.#deps.upstream?.plan.welcome ?? null;
    const { email } = vouched;
    const org = welcome && getOrg(queries, welcome.org_id as OrgId);
    const { isOpen } = this.#deps;
    const isNew = email !== null && org?.ending_at === null && !isHeld(queries, email, org.org_id, isOpen);
    if (
      !welcome ||
      role === null ||
      !isNew ||
      hasDeparted(queries, org.org_id, vouched) ||
      hasDeparted(queries, org.org_id, byAddress(email))
    ) {
      throw new ServiceError("sign_in_failed", {
        detail: "The account is not linked to a user of this service.",
        hint: "Sign in with another method, then link the account on the Sign-in methods page.",
      });
    }
    releaseEmail(queries, email, null);
    if (countMembers(queries, org.org_id) >= MAX_MEMBERS) {
      throw new ServiceError("quota_exceeded", { detail: `An organization may have ${MAX_MEMBERS} members.` });
    }
    const user: UserRow = {
      user_id: newId("usr"),
      email,
      name: vouched.name || (email.split("@")[0] ?? email),
      password_hash: null,
      created_at: now(),
      disabled_at: null,
      // According to the issuer.
      verified_at: now(),
    };
    requirePerson({ email, name: user.name });
    addUser(queries, user);
    addIdentity(queries, vouched, user.user_id);
    const { user_id } = user;
    insertMembership(queries, { org_id: org.org_id, user_id, role, created_at: now() });
    record(queries, "user.created", user, org.org_id, requestSource, { by: "identity" });
    record(queries, "member.added", user, org.org_id, requestSource, { user_id, role });
    return user;
  }
}

/**
 * Whether the address belongs to a user that may be the same person: a user that has verified it, or is a member there already, or, if
 * strangers cannot sign up, was added by the operator or a member.
 */
function isHeld(queries: Queries, email: string, orgId: OrgId, isOpen: boolean): boolean {
  const user = userByEmail(queries, email);
  if (user === undefined) return false;
  const orgs = membershipsOf(queries, user.user_id).map(({ org_id }) => org_id);
  return orgs.length > 0 && (!isOpen || orgs.includes(orgId) || ownerOfEmail(queries, email) !== undefined);
}

/** Otherwise a former member could unlink the account, be removed, and return with it. */
function noteUnlinked(queries: Queries, userId: UserId, identityId: IdentityId): void {
  const row = listIdentities(queries, userId).find(({ identity_id }) => identity_id === identityId);
  if (!row) return;
  for (const { org_id } of membershipsOf(queries, userId)) noteDeparted(queries, org_id, userId, row);
}

const tooLate = () =>
  new ServiceError("sign_in_failed", {
    detail: "The sign-in expired, was already completed, or was started in another browser. Sign in again.",
  });

function addIdentity(queries: Queries, { issuer, subject, email, name }: Vouched, user_id: UserId): IdentityRow {
  const label = email ?? (name || subject.slice(0, 64));
  const row: IdentityRow = {
    identity_id: newId("idn"),
    user_id,
    issuer,
    subject,
    label,
    created_at: now(),
    last_used_at: null,
  };
  insertIdentity(queries, row);
  return row;
}

function toRecord(
  { identity_id, issuer, label, created_at, last_used_at }: IdentityRow,
  is_usable: boolean,
): IdentityRecord {
  return { identity_id, issuer, label, is_usable, created_at, last_used_at };
}
