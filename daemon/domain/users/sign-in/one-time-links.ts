/** Redeems links: the first owner, a new password after loss, an invited member. */
import { MAX_MEMBERS } from "../../../../shared/api/people/members.ts";
import { newId, type OrgId, type SessionId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { listOrgs, type OrgChanges } from "../../orgs/index.ts";
import { dropIdentities } from "../identities/identities-store.ts";
import { noteDeparted } from "../identities/tombstone.ts";
import { addressOf, requirePerson } from "../person.ts";
import { type RequestSource, record } from "../record.ts";
import { begin, type SignedIn } from "../sessions/session-start.ts";
import { requireSession } from "../sessions/sessions.ts";
import { addNew, type NewPerson, type NewUsers, type NewWay } from "../sign-up/new-user.ts";
import {
  changeSession,
  changeUser,
  countMembers,
  dropBrowsers,
  dropLinks,
  endSessions,
  getMembership,
  getUser,
  insertMembership,
  listUsers,
  membershipsOf,
  useLink,
  userByEmail,
} from "../store.ts";
import type { LinkRow, UserRow } from "../table.ts";
import { requireLink } from "./links.ts";
import { addPasskey } from "./passkeys.ts";
import { dropPasskeys } from "./passkeys-store.ts";
import { requireSame, type SignIn } from "./sign-in.ts";

interface RedeemDeps {
  database: Database;
  changes: OrgChanges;
  newcomers: NewUsers;
  signIn: SignIn;
  /** Called when sessions have ended or changed organization, and the audit record is written. */
  onEnded(): void;
}

export class OneTimeLinks {
  readonly #deps: RedeemDeps;

  constructor(deps: RedeemDeps) {
    this.#deps = deps;
  }

  /** The link of a token. Throws link_not_found. */
  look(token: string, kinds: readonly LinkRow["kind"][]): LinkRow {
    return requireLink(this.#deps.database.queries, token, kinds);
  }

  /** The person that follows a link: an existing user, or a new one with this id. Throws link_not_found. */
  comer(token: string): Pick<UserRow, "user_id" | "email" | "name"> {
    const { user_id } = this.look(token, ["setup", "user", "invitation", "signup"]);
    const user = user_id === null ? undefined : getUser(this.#deps.database.queries, user_id);
    return user ?? { user_id: newId("usr"), email: "", name: "" };
  }

  /** Creates the first owner. Throws link_not_found, validation_failed, rate_limited. */
  async setup(token: string, person: NewPerson, requestSource: RequestSource): Promise<SignedIn> {
    const { newcomers } = this.#deps;
    this.look(token, ["setup"]);
    const made = await newcomers.make(person, requestSource);
    return await this.#deps.database.commit((queries) => {
      const link = requireLink(queries, token, ["setup"]);
      const org = listOrgs(queries)[0];
      // A user that joined another way is the first.
      if (!org || listUsers(queries).length > 0 || !useLink(queries, link.link_id, now())) {
        throw new ServiceError("link_not_found");
      }
      addNew(queries, made);
      const { user } = made;
      record(queries, "user.created", user, org.org_id, requestSource, { by: "setup" });
      join(queries, user, org.org_id, "owner", requestSource, {});
      return begin(queries, user, org.org_id, requestSource, "setup");
    });
  }

  /**
   * Sets a new password or passkey for an existing user. All open sessions end; with `isOnly`, other sign-in methods and applications end
   * too, so that an intruder that has added some of them loses access. Throws link_not_found, validation_failed, rate_limited.
   */
  async renew(token: string, way: NewWay, isOnly: boolean, requestSource: RequestSource): Promise<SignedIn> {
    const { database, changes, newcomers, onEnded } = this.#deps;
    const { user_id } = this.look(token, ["user"]);
    if ("passkey" in way && way.user_id !== user_id) throw new ServiceError("link_not_found");
    const { password_hash, passkey } = await newcomers.way(way, requestSource);
    const renewed = (queries: Queries) => {
      const link = requireLink(queries, token, ["user"]);
      const user = link.user_id === null ? undefined : getUser(queries, link.user_id);
      const org = user && membershipsOf(queries, user.user_id)[0]?.org_id;
      if (!user || user.disabled_at !== null || org === undefined || !useLink(queries, link.link_id, now())) {
        throw new ServiceError("link_not_found");
      }
      dropLinks(queries, "user", user.user_id);
      if (isOnly) {
        for (const { org_id } of membershipsOf(queries, user.user_id)) noteDeparted(queries, org_id, user.user_id);
        dropPasskeys(queries, user.user_id);
        dropIdentities(queries, user.user_id);
        changeUser(queries, user.user_id, { password_hash: null });
      }
      if (passkey) addPasskey(queries, passkey, user.user_id);
      else changeUser(queries, user.user_id, { password_hash });
      dropBrowsers(queries, user.user_id);
      const sessions_ended = endSessions(queries, user.user_id, now());
      const event = passkey ? "auth.passkey_added" : "auth.password_set";
      record(queries, event, user, org, requestSource, { by: "link", sessions_ended, is_only: isOnly });
      return begin(queries, user, org, requestSource, "link");
    };
    // In one commit: between two, a session that is still open could authorize another application.
    const signedIn =
      isOnly && user_id !== null ? await changes.endGrantsOf(user_id, renewed) : await database.commit(renewed);
    onEnded();
    return signedIn;
  }

  /**
   * A new user accepts an invitation, or an existing one with its address and password: the requested input is the same, so that it does
   * not reveal whether the address has an account. Throws link_not_found, validation_failed, sign_in_failed, already_exists, rate_limited.
   */
  async invitation(token: string, person: NewPerson, requestSource: RequestSource): Promise<SignedIn> {
    const { database, newcomers, signIn } = this.#deps;
    const link = this.look(token, ["invitation"]);
    const email = addressOf(person.email);
    requirePerson({ name: person.name.trim(), email, ...("password" in person.way ? person.way : {}) });
    requireInvited(link, email);
    const known = userByEmail(database.queries, email);
    if (known && "passkey" in person.way) {
      // Revealed only after making a passkey, which costs as much as for an unknown address.
      await newcomers.way(person.way, requestSource);
      throw new ServiceError("sign_in_failed", {
        detail: "An account with the address already exists: sign in first, then open the link again.",
      });
    }
    const made = known
      ? {
          user: await signIn.verify(email, "password" in person.way ? person.way.password : "", requestSource),
          passkey: null,
        }
      : await newcomers.make(person, requestSource);
    const { user } = made;
    return await database.commit((queries) => {
      const open = requireLink(queries, token, ["invitation"]);
      if (known) requireSame(queries, user);
      else addNew(queries, made);
      const orgId = take(queries, open, user, requestSource);
      if (!known) record(queries, "user.created", user, orgId, requestSource, { by: "invitation" });
      return begin(queries, user, orgId, requestSource, "invitation");
    });
  }

  /** A signed-in user accepts it: the session continues, in that organization. Throws link_not_found, session_ended, already_exists. */
  async asMyself(token: string, sessionId: SessionId, requestSource: RequestSource): Promise<void> {
    await this.#deps.database.commit((queries) => {
      const session = requireSession(queries, sessionId);
      const link = requireLink(queries, token, ["invitation"]);
      requireInvited(link, session.email);
      const org_id = take(queries, link, session, requestSource);
      changeSession(queries, sessionId, { org_id });
    });
    this.#deps.onEnded();
  }
}

/** Throws validation_failed. */
function requireInvited({ email }: LinkRow, address: string): void {
  if (email === null || email === address) return;
  throw new ServiceError("validation_failed", {
    errors: [{ field: "email", code: "not_invited", message: "is not the invited address" }],
  });
}

/** Accepts an invitation within a transaction. Throws link_not_found, already_exists, quota_exceeded. */
function take(
  queries: Queries,
  { link_id, org_id, role }: LinkRow,
  user: Pick<UserRow, "user_id" | "name">,
  requestSource: RequestSource,
): OrgId {
  if (org_id === null || role === null) throw new ServiceError("link_not_found");
  if (getMembership(queries, org_id, user.user_id)) {
    throw new ServiceError("already_exists", {
      detail: "You already belong to the organization. The link remains valid.",
    });
  }
  if (countMembers(queries, org_id) >= MAX_MEMBERS) {
    throw new ServiceError("quota_exceeded", { detail: `An organization may have ${MAX_MEMBERS} members.` });
  }
  if (!useLink(queries, link_id, now())) throw new ServiceError("link_not_found");
  join(queries, user, org_id, role, requestSource, { invitation_id: link_id });
  return org_id;
}

function join(
  queries: Queries,
  user: Pick<UserRow, "user_id" | "name">,
  org_id: OrgId,
  role: NonNullable<LinkRow["role"]>,
  requestSource: RequestSource,
  details: Record<string, unknown>,
): void {
  const { user_id } = user;
  insertMembership(queries, { org_id, user_id, role, created_at: now() });
  record(queries, "member.added", user, org_id, requestSource, { user_id, role, ...details });
}
