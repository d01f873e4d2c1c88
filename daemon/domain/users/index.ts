/** People: accounts, roles in organizations, sign-in methods and sessions. */
import type { OrgId, SessionId, UserId } from "../../../shared/ids.ts";
import type { Bound, HeldSession } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { KeyRow } from "../orgs/index.ts";
import { makeAccount } from "./account.ts";
import type { UserDeps } from "./deps.ts";
import { Addresses } from "./identities/addresses.ts";
import { Identities } from "./identities/identities.ts";
import { makeMembers } from "./members/members.ts";
import { keepEndingOrgs, makeOrgDelete } from "./members/org-end.ts";
import { givenBy } from "./members/roles.ts";
import { makePersonal } from "./personal.ts";
import { isCurrent, makeRecognise, type Recognise } from "./sessions/sessions.ts";
import { Challenges } from "./sign-in/challenges.ts";
import { EmailLinks } from "./sign-in/links.ts";
import { OneTimeLinks } from "./sign-in/one-time-links.ts";
import { Passkeys } from "./sign-in/passkeys.ts";
import { Passwords } from "./sign-in/passwords.ts";
import { SignIn } from "./sign-in/sign-in.ts";
import { NewUsers } from "./sign-up/new-user.ts";
import { SignUp } from "./sign-up/sign-up.ts";
import { changeSession, getMembership } from "./store.ts";

export { RETURN_PATH } from "./identities/identities.ts";
export { OidcClient, planOidc } from "./identities/oidc.ts";
export { locateOfPeople } from "./locate.ts";
export { isMakerGood, isOver } from "./members/makers.ts";
export { requireOwner } from "./members/roles.ts";
export { makeUserOperator } from "./operator.ts";
export { usersPersonal } from "./personal.ts";
export type { RequestSource } from "./record.ts";
export type { SignedIn } from "./sessions/session-start.ts";
export { requireProof, requireSession } from "./sessions/sessions.ts";
export { findPasskeys } from "./sign-in/passkeys.ts";
export { readAnswer } from "./sign-in/webauthn.ts";
export type { NewPerson, NewWay } from "./sign-up/new-user.ts";
export { makeSignUpOperator } from "./sign-up/operator.ts";
export { planSignUp } from "./sign-up/sign-up.ts";

export interface Users {
  operations: Bound[];
  /** The caller of a session's cookie. Throws session_ended. */
  recognise: Recognise;
  signIn: SignIn;
  redeem: OneTimeLinks;
  signUp: SignUp;
  addresses: Addresses;
  links: EmailLinks;
  passkeys: Passkeys;
  identities: Identities;
  /** Completes the requested ends of organizations until the returned function is called. */
  keepEnding(endAll: (orgId: OrgId) => Promise<void>): () => void;
  /** Calls `cut` when the session is no longer valid, or has another user or organization; the returned function unsubscribes. */
  hold(held: HeldSession, cut: () => void): () => void;
}

export function makeUsers({
  database,
  changes,
  log,
  holds,
  planOf,
  url,
  rooms,
  personal,
  upstream,
  plans,
  signUpPlan,
  hasMail,
}: Omit<UserDeps, "onEnded">): Users {
  const { queries } = database;
  const passwords = new Passwords();
  const onEnded = () => holds.look();
  const challenges = new Challenges();
  const issuer = upstream?.plan.issuer ?? null;
  const passkeys = new Passkeys({ database, challenges, url, issuer });
  const rpId = () => passkeys.place?.rp_id ?? null;
  const isOpen = signUpPlan.mode === "open" || signUpPlan.mode === "approval";
  const identities = new Identities({ isOpen, database, changes, onEnded, challenges, upstream, url, rpId });
  const newcomers = new NewUsers(passwords, passkeys);
  const links = new EmailLinks();
  const signIn = new SignIn(database, passwords, onEnded);
  const ends = { database, changes, log, rooms, onEnded };
  const writing = new Set<SessionId>();
  const seen = (sessionId: SessionId) => {
    if (writing.has(sessionId)) return;
    writing.add(sessionId);
    database
      .commitWithin(1000, (within) => changeSession(within, sessionId, { seen_at: now() }))
      .catch((error: unknown) => log.warn("failed to write the last use of a session", { error: String(error) }))
      .finally(() => writing.delete(sessionId));
  };
  return {
    operations: [
      ...makeAccount({ database, onEnded }),
      ...passkeys.operations(),
      ...identities.operations(),
      ...makeMembers({ database, changes, url, links, hasMail, onEnded }),
      makeOrgDelete(ends),
      ...makePersonal({ database, changes, personal, onEnded }),
    ],
    keepEnding: (endAll) => keepEndingOrgs(ends, endAll),
    recognise: makeRecognise(queries, planOf, seen),
    signIn,
    redeem: new OneTimeLinks({ database, changes, newcomers, signIn, onEnded }),
    signUp: new SignUp({ database, changes, plans, plan: signUpPlan, hasMail, newcomers }),
    addresses: new Addresses(database, log, hasMail),
    links,
    passkeys,
    identities,
    hold: (held, cut) => {
      const { session_id, looks_at, role } = held;
      return holds.hold(`${session_id} ${looks_at} ${role}`, () => isCurrent(queries, held), cut);
    },
  };
}

/** Checks that a person may give the scopes of a new key, in the transaction that adds it. Throws insufficient_scope. */
export function requireMaker(queries: Queries, { org_id, created_by_type, created_by_id, scopes }: KeyRow): void {
  if (created_by_type !== "user") return;
  const role = getMembership(queries, org_id as OrgId, created_by_id as UserId)?.role ?? "viewer";
  const gives = givenBy(role);
  if (scopes.every((scope) => gives.includes(scope))) return;
  throw new ServiceError("insufficient_scope", { detail: "You may no longer create the key." });
}
