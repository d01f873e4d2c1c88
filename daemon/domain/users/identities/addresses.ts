/**
 * Account recovery and change of address by e-mail: a recovery link for a user without a working sign-in method, and verification of
 * another address, or the same. A recovery link is mailed only to an address that its user has verified.
 */
import type { SessionId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import type { Log } from "../../../core/log.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import { type Database, violatesUnique } from "../../../db/transact.ts";
import { hasRoomFor, post, postNothing } from "../../mail/index.ts";
import { addressOf, requirePerson } from "../person.ts";
import { type RequestSource, record } from "../record.ts";
import { requireProved, requireSession } from "../sessions/sessions.ts";
import { addLink, requireLink } from "../sign-in/links.ts";
import { changeUser, dropLinks, getUser, useLink } from "../store.ts";
import { found, releaseEmail } from "./email-ownership.ts";

/** Maximum delay of the audit record of a recovery request. */
const RECORD_MS = 100;

export class Addresses {
  readonly #database: Database;
  readonly #log: Pick<Log, "error">;
  /** Whether e-mail is sent. */
  readonly isOn: boolean;

  constructor(database: Database, log: Pick<Log, "error">, isOn: boolean) {
    this.#database = database;
    this.#log = log;
    this.isOn = isOn;
  }

  /** Requests a recovery link. The response does not reveal whether the address has an account. Throws validation_failed, mail_off. */
  async recover(given: string, requestSource: RequestSource): Promise<void> {
    this.#requireMail();
    const email = addressOf(given);
    requirePerson({ email });
    const recipient = await this.#database.commit((queries) => {
      const { user, orgs } = found(queries, email);
      const [org] = orgs;
      const isOpen = user !== undefined && user.disabled_at === null && user.verified_at !== null;
      const to = hasRoomFor(queries, email, "recover") && isOpen && org !== undefined ? { user, org } : null;
      const user_id = to?.user.user_id ?? null;
      const maker = { type: "user", id: user_id ?? "" };
      const { row } = addLink(queries, { kind: "user", user_id, maker, isVoid: to === null });
      if (to) post(queries, { kind: "recover", to: email, user_id: null, link_id: row.link_id });
      else postNothing(queries, email, "recover");
      return to;
    });
    if (!recipient) return;
    // After the response, which takes as long as for an unknown address.
    const { user, org } = recipient;
    this.#database
      .commitWithin(RECORD_MS, (queries) =>
        record(queries, "auth.recovery_asked", user, org, requestSource, { user_id: user.user_id }),
      )
      .catch((error: unknown) => this.#log.error("failed to write an audit record", { error: describeError(error) }));
  }

  /**
   * A signed-in user requests a change to this address. Throws proof_required, validation_failed, mail_off, rate_limited, session_ended.
   */
  async ask(sessionId: SessionId, given: string, requestSource: RequestSource): Promise<void> {
    requireProved(this.#database.queries, sessionId);
    this.#requireMail();
    const email = addressOf(given);
    requirePerson({ email });
    await this.#database.commit((queries) => {
      const session = requireProved(queries, sessionId);
      const { user_id, org_id } = session;
      dropLinks(queries, "email", user_id);
      const { row } = addLink(queries, { kind: "email", user_id, email, maker: { type: "user", id: user_id } });
      post(queries, { kind: "email", to: email, user_id, link_id: row.link_id });
      record(queries, "user.address_asked", session, org_id, requestSource, { user_id });
    });
  }

  /** Confirms the address with the e-mail's link, for the signed-in user. Throws link_not_found, already_exists, session_ended. */
  async confirm(sessionId: SessionId, token: string, requestSource: RequestSource): Promise<void> {
    await this.#database.commit((queries) => {
      const session = requireSession(queries, sessionId);
      const { link_id, user_id, email } = requireLink(queries, token, ["email"]);
      if (user_id !== session.user_id || email === null || !useLink(queries, link_id, now())) {
        throw new ServiceError("link_not_found");
      }
      const before = getUser(queries, user_id);
      releaseEmail(queries, email, user_id);
      try {
        changeUser(queries, user_id, { email, verified_at: now() });
      } catch (error) {
        if (!violatesUnique(error, "users.email")) throw error;
        throw new ServiceError("already_exists", { detail: `An account with the address ${email} already exists.` });
      }
      if (before && before.verified_at !== null && before.email !== email) {
        post(queries, { kind: "moved", to: before.email, user_id: null, link_id: null });
      }
      // Links sent to the previous address become invalid.
      dropLinks(queries, "user", user_id);
      record(queries, "user.address_verified", session, session.org_id, requestSource, { user_id });
    });
  }

  #requireMail(): void {
    if (!this.isOn) throw new ServiceError("mail_off");
  }
}
