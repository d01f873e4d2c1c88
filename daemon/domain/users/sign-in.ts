/**
 * Owns how a person becomes a session: by the password, or by a link that lets in once. Who fails is held up a little longer each
 * time, from that address alone; a name that nobody has is answered, and takes as long, as one that somebody has.
 */
import { PASSWORD_LENGTH } from "../../../shared/api/account.ts";
import { email as emailType } from "../../../shared/api/members.ts";
import { newId, type OrgId, type UserId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { type Database, violatesUnique } from "../../db/transact.ts";
import { appendAudit } from "../audit/index.ts";
import { listOrgs } from "../orgs/index.ts";
import { requireLink } from "./links.ts";
import type { Passwords } from "./passwords.ts";
import { addSession, type From } from "./sessions.ts";
import {
  changeUser,
  dropLinks,
  endSessions,
  getMembership,
  getUser,
  insertMembership,
  insertUser,
  linkByHash as linkOf,
  membershipsOf,
  useLink,
  userByEmail,
} from "./store.ts";
import type { LinkRow, UserRow } from "./table.ts";

const FREE_FAILURES = 3;
const LONGEST_DELAY_MS = 60_000;
/** Beyond, whoever failed longest ago is forgotten. */
const MOST_FAILED = 10_000;
const EMAIL = new RegExp(emailType.pattern ?? "");

export interface SignedIn {
  /** The cookie's value, shown now and never again. */
  secret: string;
  user_id: UserId;
  org_id: OrgId;
}

/** From where a request comes, for its record. */
export interface Asked extends From {
  request_id: string;
}

export interface NewPerson {
  email?: string | undefined;
  name?: string | undefined;
  password: string;
}

export class SignIn {
  readonly #database: Database;
  readonly #passwords: Passwords;
  /** Of an address and a name; who failed last comes last. */
  readonly #failed = new Map<string, { count: number; until: number }>();

  constructor(database: Database, passwords: Passwords) {
    this.#database = database;
    this.#passwords = passwords;
  }

  /** Throws sign_in_failed, rate_limited. */
  async byPassword(email: string, password: string, asked: Asked): Promise<SignedIn> {
    const address = email.trim().toLowerCase();
    const user = await this.verify(address, password, asked.ip);
    return await this.#database.commit((queries) => {
      const org = membershipsOf(queries, user.user_id)[0]?.org_id;
      if (org === undefined)
        throw new ServiceError("sign_in_failed", { detail: "You belong to no organization any more." });
      return this.#begin(queries, user, org, asked, "password");
    });
  }

  /** Who has this address and password. Throws sign_in_failed, rate_limited. */
  async verify(address: string, password: string, ip: string | null): Promise<UserRow> {
    const from = `${ip} ${address}`;
    const wait = (this.#failed.get(from)?.until ?? 0) - Date.now();
    if (wait > 0) {
      throw new ServiceError("rate_limited", {
        detail: "Too many failed for this name from your address.",
        retryAfterSeconds: Math.ceil(wait / 1000),
      });
    }
    const user = userByEmail(this.#database.queries, address);
    const isUsable = user !== undefined && user.disabled_at === null;
    const right = await this.#passwords.isRight(password, isUsable ? user.password_hash : null);
    if (!right || !user) {
      this.#fail(from);
      throw new ServiceError("sign_in_failed");
    }
    this.#failed.delete(from);
    return user;
  }

  /** What a link is for. Throws link_not_found. */
  look(token: string, kinds: readonly LinkRow["kind"][]): LinkRow {
    return requireLink(this.#database.queries, token, kinds);
  }

  /**
   * By a link: sets the service up, gives a user a new password, or takes an invitation: as somebody new, or as who has the address and
   * the password. Throws link_not_found, sign_in_failed, validation_failed, rate_limited.
   */
  async byLink(token: string, kinds: readonly LinkRow["kind"][], person: NewPerson, asked: Asked): Promise<SignedIn> {
    const { queries } = this.#database;
    const link = requireLink(queries, token, kinds);
    const address = (person.email ?? "").trim().toLowerCase();
    const known = link.kind === "invitation" ? userByEmail(queries, address) : undefined;
    requirePerson(link, known !== undefined, { ...person, email: address });
    if (link.email !== null && link.email !== address) {
      throw new ServiceError("validation_failed", {
        detail: "The invitation is for another address.",
        errors: [{ field: "email", code: "not_invited", message: "is not the one that was invited" }],
      });
    }
    if (known) {
      const user = await this.verify(address, person.password, asked.ip);
      return await this.#database.commit((within) => this.#join(within, link.token_sha256, kinds, user, asked));
    }
    const password_hash = await this.#passwords.hash(person.password);
    return await this.#database.commit((within) => {
      // Twice at once: one of them has it.
      const now_ = requireAgain(within, link.token_sha256, kinds);
      if (now_.kind === "user") return this.#renew(within, now_, password_hash, asked);
      const user: UserRow = {
        user_id: newId("usr"),
        email: address,
        name: (person.name ?? "").trim(),
        password_hash,
        created_at: now(),
        disabled_at: null,
      };
      addUser(within, user);
      record(within, "user.created", user, null, asked, { by: now_.kind });
      if (now_.kind === "invitation") return this.#join(within, now_.token_sha256, kinds, user, asked);
      const org = listOrgs(within)[0];
      if (!org) throw new ServiceError("link_not_found");
      useLink(within, now_.link_id, now());
      dropLinks(within, "setup", null);
      insertMembership(within, { org_id: org.org_id, user_id: user.user_id, role: "owner", created_at: now() });
      record(within, "member.added", user, org.org_id, asked, { user_id: user.user_id, role: "owner" });
      return this.#begin(within, user, org.org_id, asked, "setup");
    });
  }

  /** Who is signed in takes an invitation. Throws link_not_found. */
  async take(token: string, userId: UserId, asked: Asked): Promise<SignedIn> {
    const link = this.look(token, ["invitation"]);
    return await this.#database.commit((queries) => {
      const user = getUser(queries, userId);
      if (!user || (link.email !== null && link.email !== user.email)) throw new ServiceError("link_not_found");
      return this.#join(queries, link.token_sha256, ["invitation"], user, asked);
    });
  }

  #renew(queries: Queries, link: LinkRow, password_hash: string, asked: Asked): SignedIn {
    const user = link.user_id === null ? undefined : getUser(queries, link.user_id);
    const org = user && membershipsOf(queries, user.user_id)[0]?.org_id;
    if (!user || user.disabled_at !== null || org === undefined) throw new ServiceError("link_not_found");
    useLink(queries, link.link_id, now());
    changeUser(queries, user.user_id, { password_hash });
    const ended = endSessions(queries, user.user_id, now());
    record(queries, "auth.password_set", user, null, asked, { by: "link", sessions_ended: ended });
    return this.#begin(queries, user, org, asked, "link");
  }

  #join(queries: Queries, sha256: string, kinds: readonly LinkRow["kind"][], user: UserRow, asked: Asked): SignedIn {
    const link = requireAgain(queries, sha256, kinds);
    const { org_id, role } = link;
    if (org_id === null || role === null) throw new ServiceError("link_not_found");
    useLink(queries, link.link_id, now());
    if (!getMembership(queries, org_id, user.user_id)) {
      insertMembership(queries, { org_id, user_id: user.user_id, role, created_at: now() });
      const { user_id } = user;
      record(queries, "member.added", user, org_id, asked, { user_id, role, invitation_id: link.link_id });
    }
    return this.#begin(queries, user, org_id, asked, "invitation");
  }

  #begin(queries: Queries, user: UserRow, orgId: OrgId, asked: Asked, by: string): SignedIn {
    const { secret, row } = addSession(queries, user.user_id, orgId, asked);
    record(queries, "auth.signed_in", user, orgId, asked, { by, session_id: row.session_id });
    return { secret, user_id: user.user_id, org_id: orgId };
  }

  #fail(from: string): void {
    const count = (this.#failed.get(from)?.count ?? 0) + 1;
    const delay = count < FREE_FAILURES ? 0 : Math.min(LONGEST_DELAY_MS, 1000 * 2 ** (count - FREE_FAILURES));
    this.#failed.delete(from);
    this.#failed.set(from, { count, until: Date.now() + delay });
    for (const oldest of this.#failed.keys()) {
      if (this.#failed.size <= MOST_FAILED) break;
      this.#failed.delete(oldest);
    }
  }
}

/** Throws already_exists. */
export function addUser(queries: Queries, user: UserRow): void {
  try {
    insertUser(queries, user);
  } catch (error) {
    if (!violatesUnique(error, "users.email")) throw error;
    throw new ServiceError("already_exists", {
      detail: `Somebody with the address ${user.email} is here already.`,
      cause: error,
    });
  }
}

function requireAgain(queries: Queries, sha256: string, kinds: readonly LinkRow["kind"][]): LinkRow {
  const link = linkOf(queries, sha256);
  if (!link || !kinds.includes(link.kind) || link.used_at !== null) throw new ServiceError("link_not_found");
  return link;
}

/** All that is wrong with the fields, at once. Throws validation_failed. */
function requirePerson(link: LinkRow, isKnown: boolean, { email, name, password }: NewPerson): void {
  const errors = [];
  const isNew = link.kind !== "user" && !isKnown;
  if (link.kind !== "user" && !EMAIL.test(email ?? "")) {
    errors.push({ field: "email", code: "pattern", message: "is not an e-mail address" });
  }
  const trimmed = (name ?? "").trim();
  if (isNew && (trimmed.length === 0 || trimmed.length > 128)) {
    errors.push({ field: "name", code: "length", message: "has 1 to 128 characters", min: 1, max: 128 });
  }
  const { minLength, maxLength } = PASSWORD_LENGTH;
  const least = isKnown ? 1 : minLength;
  if (password.length < least || password.length > maxLength) {
    const message = `has ${minLength} to ${maxLength} characters`;
    errors.push({ field: "password", code: "length", message, min: minLength, max: maxLength });
  }
  if (errors.length > 0) throw new ServiceError("validation_failed", { errors });
}

function record(
  queries: Queries,
  event: string,
  user: UserRow,
  org_id: OrgId | null,
  { ip, request_id }: Asked,
  details: Record<string, unknown>,
): void {
  const actor = { type: "user", id: user.user_id, name: user.name };
  appendAudit(queries, { event, outcome: "success", at: now(), org_id, actor, source: "web", request_id, ip, details });
}
