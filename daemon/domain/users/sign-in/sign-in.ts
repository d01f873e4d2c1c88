/** Password sign-in, re-authentication, and change of password. */
import type { SessionId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { addressOf, requirePerson } from "../person.ts";
import { type RequestSource, record } from "../record.ts";
import { hashOf } from "../sessions/secrets.ts";
import { begin, browserOf, type SignedIn } from "../sessions/session-start.ts";
import { renewSession, requireProved, requireSession } from "../sessions/sessions.ts";
import { changeUser, dropLinks, endSessions, getUser, isBrowserOf, membershipsOf, userByEmail } from "../store.ts";
import type { UserRow } from "../table.ts";
import { type Count, LoginThrottle } from "./login-throttle.ts";
import { type Asker, type Passwords, stranger } from "./passwords.ts";

/** Attempts without a delay: from a known browser or session, from a network for one name, and from all strangers for one name. */
const FREE = { known: 5, network: 3, strangers: 20 } as const;
const MAX_CHARACTERS = 254;

export class SignIn {
  readonly #database: Database;
  readonly #passwords: Passwords;
  readonly #onEnded: () => void;
  readonly #attempts = new LoginThrottle();

  /** `onEnded` is called when sessions have ended, and the audit record is written. */
  constructor(database: Database, passwords: Passwords, onEnded: () => void) {
    this.#database = database;
    this.#passwords = passwords;
    this.#onEnded = onEnded;
  }

  /** Throws sign_in_failed, rate_limited. */
  async byPassword(email: string, password: string, requestSource: RequestSource): Promise<SignedIn> {
    const user = await this.verify(addressOf(email), password, requestSource);
    return await this.#database.commit((queries) => {
      requireSame(queries, user);
      const org = membershipsOf(queries, user.user_id)[0]?.org_id;
      if (org === undefined)
        throw new ServiceError("sign_in_failed", { detail: "You no longer belong to an organization." });
      return begin(queries, user, org, requestSource, "password");
    });
  }

  /**
   * The user with this address and password. An unknown name gets the same response, after the same time.
   * Throws sign_in_failed, rate_limited.
   */
  async verify(address: string, password: string, requestSource: RequestSource): Promise<UserRow> {
    const { queries } = this.#database;
    const name = address.slice(0, MAX_CHARACTERS);
    const user = userByEmail(queries, name);
    const known = user ? browserOf(queries, user.user_id, requestSource) : null;
    if (known !== null) return await this.#compare(ofKnown(`browser ${known}`, user), user, password);
    const counts = [
      { name: `${requestSource.network} at ${name}`, free: FREE.network },
      { name: `strangers at ${name}`, free: FREE.strangers },
    ];
    return await this.#compare({ counts, asker: stranger(requestSource.network) }, user, password);
  }

  /** Whether the user with this address, or any user if null, has signed in with the browser: attempts of others do not delay it. */
  isKnown(email: string | null, { browser }: RequestSource): boolean {
    const { queries } = this.#database;
    const user = email === null ? null : userByEmail(queries, addressOf(email).slice(0, MAX_CHARACTERS));
    const sha256 = browser === null ? null : hashOf(browser);
    return user !== undefined && sha256 !== null && isBrowserOf(queries, user?.user_id ?? null, sha256);
  }

  /** Proof by password; replaces the session's secret with the returned one. Throws sign_in_failed, rate_limited, session_ended. */
  async prove(sessionId: SessionId, password: string, requestSource: RequestSource): Promise<string> {
    const { queries } = this.#database;
    const user = getUser(queries, requireSession(queries, sessionId).user_id);
    const right = await this.#compare(ofKnown(`session ${sessionId}`, user), user, password);
    return await this.#database.commit((within) => {
      requireSame(within, right);
      const { org_id } = requireSession(within, sessionId);
      record(within, "auth.proved", right, org_id, requestSource, { session_id: sessionId });
      return renewSession(within, sessionId);
    });
  }

  /**
   * Ends all other sessions, and replaces this session's secret with the returned one. Throws validation_failed, proof_required,
   * session_ended.
   */
  async setPassword(sessionId: SessionId, password: string, requestSource: RequestSource): Promise<string> {
    const { user_id } = requireProved(this.#database.queries, sessionId);
    requirePerson({ password });
    const password_hash = await this.#passwords.hash(password, { line: "known", name: user_id });
    const secret = await this.#database.commit((within) => {
      const { user_id, name, org_id } = requireProved(within, sessionId);
      changeUser(within, user_id, { password_hash });
      dropLinks(within, "user", user_id);
      const sessions_ended = endSessions(within, user_id, now(), { but: sessionId });
      record(within, "auth.password_set", { user_id, name }, org_id, requestSource, { by: "session", sessions_ended });
      return renewSession(within, sessionId);
    });
    this.#onEnded();
    return secret;
  }

  async #compare({ counts, asker }: Trying, user: UserRow | undefined, password: string): Promise<UserRow> {
    const hash = user?.disabled_at === null ? user.password_hash : null;
    const right = await this.#passwords.isRight(password, hash, asker, () => this.#attempts.begin(counts));
    if (!right || !user) throw new ServiceError("sign_in_failed");
    this.#attempts.succeeded(counts);
    return user;
  }
}

interface Trying {
  counts: Count[];
  asker: Asker;
}

/** For a known user: a separate count of the browser or session, and the hashing slots of one person, however many of these there are. */
const ofKnown = (name: string, user: UserRow | undefined): Trying => ({
  counts: [{ name, free: FREE.known }],
  asker: { line: "known", name: user?.user_id ?? name },
});

/** A change of password, or disabling the user, during the comparison takes effect. Throws sign_in_failed. */
export function requireSame(queries: Queries, { user_id, password_hash }: UserRow): void {
  const user = getUser(queries, user_id);
  if (!user || user.disabled_at !== null || user.password_hash !== password_hash) {
    throw new ServiceError("sign_in_failed");
  }
}
